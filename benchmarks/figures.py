"""What a benchmark found: rows that are kept as JSON, compared, drawn and put into the report."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.latency import Latency
from benchmarks.measure import Figures

TOLERANCE: Final = 0.15
"""By how much a ratio may fall, or a size grow, before it counts: medians spread by less."""


@dataclass(frozen=True, slots=True)
class Row:
    """One contender's figures in one run."""

    run: int
    name: str
    figures: Figures


@dataclass(frozen=True, slots=True)
class Found:
    """All that one benchmark measured of throughput and latency."""

    rows: Sequence[Row]
    latencies: Sequence[Latency] = ()

    @property
    def names(self) -> list[str]:
        """Return what was measured, in order."""
        return list(dict.fromkeys(row.name for row in self.rows))

    def medians(self) -> list[Row]:
        """Return one row for each contender, of the medians of its runs, and their number."""
        runs = {name: [it.figures for it in self.rows if it.name == name] for name in self.names}
        return [Row(len(each), name, _median(each)) for name, each in runs.items()]

    def write(self, path: Path) -> None:
        """Keep them as JSON, for later ones to be compared with."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")


def _median(runs: Sequence[Figures]) -> Figures:
    values = [astuple(each) for each in runs]
    return Figures(*(None if None in each else median(each) for each in zip(*values, strict=True)))


def read_found(path: Path) -> Found:
    """Read what ``Found.write`` wrote."""
    kept = json.loads(path.read_text())
    rows = [Row(it["run"], it["name"], Figures(**it["figures"])) for it in kept["rows"]]
    return Found(rows, [Latency(**it) for it in kept["latencies"]])


def ratios(rows: Sequence[Row], baseline: str) -> dict[str, float]:
    """Return each contender's records per CPU-second over the baseline's of the same run.

    The median of all runs in which both were measured.
    """
    base = {row.run: row.figures.records_per_cpu_s for row in rows if row.name == baseline}
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.name != baseline and row.run in base:
            found[row.name].append(row.figures.records_per_cpu_s / base[row.run])
    return {name: median(each) for name, each in found.items()}


def speedup(found: Mapping[str, float]) -> float | None:
    """Return what two workers do for one's CPU-second each, out of ratios; None if not measured."""
    if not found.keys() >= {"worker", "worker-twice"}:
        return None
    return 2 * found["worker-twice"] / found["worker"]


def fallen(
    now: Mapping[str, float], committed: Mapping[str, float], tolerance: float = TOLERANCE
) -> list[str]:
    """Return a line for each ratio that is clearly below the committed one."""
    return [
        f"{name}: {now[name]:.2f} of the pass-through, {committed[name]:.2f} when last committed"
        for name in now
        if name in committed and now[name] < committed[name] * (1 - tolerance)
    ]
