"""Draws the figures as SVG, where matplotlib is installed."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.figures import Found

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS: Final = "#2f6fad"
OTHERS: Final = "#9aa5b1"
DOTS: Final = "#22303c"
_WIDTH_IN: Final = 8.0
_MARGIN_IN: Final = 1.0
_ROW_IN: Final = 0.34
_STYLE: Final = {"svg.hashsalt": "benchmarks", "svg.fonttype": "none", "font.size": 10}


def draw(found: Found, folder: Path) -> str:
    """Write ``throughput.svg`` and ``latency.svg``; return Markdown that shows them.

    Without matplotlib, which the dependency group ``bench`` brings, nothing is drawn.
    """
    if find_spec("matplotlib") is None:
        return ""
    folder.mkdir(exist_ok=True)
    shown = []
    for name, about, paint, rows in (
        ("throughput", "Thousand records per CPU-second", _throughput, len(found.names)),
        (
            "latency",
            "Milliseconds to a visible chunk: p50, a line to p99",
            _latency,
            len(found.latencies),
        ),
    ):
        if rows:
            axes = _axes(about, rows)
            paint(axes, found)
            _write(axes, folder / f"{name}.svg")
            shown.append(f"\n![{about}]({folder.name}/{name}.svg)\n")
    return "".join(shown)


def _throughput(axes: "Axes", found: Found) -> None:
    """Draw a bar for each contender's median, the fastest on top, and a dot for each run."""
    ordered = sorted(found.medians(), key=lambda row: row.figures.records_per_cpu_s)
    names = [row.name for row in ordered]
    medians = [row.figures.records_per_cpu_s / 1e3 for row in ordered]
    axes.barh(names, medians, color=_colours(names))
    runs = [row.figures.records_per_cpu_s / 1e3 for row in found.rows]
    axes.scatter(runs, [row.name for row in found.rows], color=DOTS, s=10, zorder=2)


def _latency(axes: "Axes", found: Found) -> None:
    """Draw for each contender and load a dot at the median and a line on to p99."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter  # noqa: PLC0415 - as below

    latencies = list(reversed(found.latencies))
    places = [f"{it.name} at {it.load:.0%}" for it in latencies]
    p50s_ms, p99s_ms = [it.p50_ms for it in latencies], [it.p99_ms for it in latencies]
    colours = _colours([it.name for it in latencies])
    axes.hlines(places, p50s_ms, p99s_ms, color=colours, linewidth=3)
    axes.scatter(p50s_ms, places, color=colours, s=50)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _colours(names: list[str]) -> list[str]:
    return [OURS if name.startswith("worker") else OTHERS for name in names]


def _axes(about: str, rows: int) -> "Axes":
    from matplotlib.figure import Figure  # noqa: PLC0415 - need not be installed

    axes = Figure(figsize=(_WIDTH_IN, _MARGIN_IN + _ROW_IN * rows), layout="constrained").subplots()
    axes.set_xlabel(about)
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)
    return axes


def _write(axes: Any, path: Path) -> None:
    from matplotlib import rc_context  # noqa: PLC0415 - as above

    with rc_context(_STYLE):  # the same figures give the same file
        axes.figure.savefig(path, metadata={"Date": None})
