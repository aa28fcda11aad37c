"""What a run came to, as a table."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.chaos.judging import Judgement
from tests.chaos.takeovers import Spread


@dataclass(frozen=True)
class Outcome:
    """Everything that is known in the end."""

    title: str
    takeovers: Mapping[str, Spread]
    exits: Counter[str]
    traffic: Counter[str]
    judgement: Judgement
    failures: Sequence[str]

    @property
    def ok(self) -> bool:
        return self.judgement.ok and not self.failures

    def __str__(self) -> str:
        lines = [self.title, "", *_table(self.takeovers), ""]
        lines += [f"workers ended: {_listed(self.exits)}", f"producers: {_listed(self.traffic)}"]
        lines.append(f"chunks closed for: {_listed(self.judgement.closed)}")
        lines.append(f"oracle: {self.judgement.verdict}")
        lines.append(f"processor verify: {self.judgement.proof}")
        lines += [f"FAILURE: {failure}" for failure in self.failures]
        lines.append("no promise broken" if self.ok else "SOMETHING IS WRONG")
        return "\n".join(lines)


def _table(takeovers: Mapping[str, Spread]) -> list[str]:
    measured = "until all partitions moved on, whatever else broke: min, median, max"
    rows = [f"{'fault':14} {'count':>5}   {measured}"]
    for kind, spread in sorted(takeovers.items()):
        times = [spread.min_s, spread.median_s, spread.max_s]
        shown = "  ".join("     -" if math.isnan(it) else f"{it:4.1f} s" for it in times)
        missed = spread.faults - spread.measured
        note = f"   (and {missed} without an end)" if missed else ""
        rows.append(f"{kind:14} {spread.faults:5}   {shown}{note}")
    total = sum(spread.faults for spread in takeovers.values())
    return [*rows, f"{'all':14} {total:5}"]


def _listed(counts: Counter[str]) -> str:
    return "; ".join(f"{what}: {count:,}" for what, count in sorted(counts.items())) or "none"
