"""The benchmark's options, and what is done in which order."""

import asyncio
import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

import click

from benchmarks.contender import Contender, ContenderError
from benchmarks.contenders import BASELINE, FOLDER, OURS
from benchmarks.figures import TOLERANCE, Found, fallen, ratios, read_found
from benchmarks.peer_table import NAMES, find_peers
from benchmarks.plots import draw
from benchmarks.report import latency_section, report, scale_section, table, takeover_section
from benchmarks.scale import PARTS, measure_scale, scale_tables
from benchmarks.session import Session, host
from benchmarks.takeover import restarts, takeover_tables, takeovers
from processor.demo.kafka_jvm import start_jvm

FIGURES: Final = FOLDER / "figures.json"
LATENCY_OF: Final = ("worker", "kafka-streams", "quix", "bytewax")
SHORT_RUNS: Final = 2
SHORT_OF: Final = (BASELINE, "worker", "worker-qwen2.5")


def say(line: str) -> None:
    """Show how far it is."""
    click.echo(line, err=True)


async def measured(
    contenders: dict[str, Contender], folder: Path, runs: int, records: int, seconds: float
) -> tuple[Found, list[str]]:
    """Measure throughput, then latency of some; return a line for each peer that failed too."""
    async with host(folder) as given:
        session = Session(given, folder, say)
        rows = await session.throughput(contenders, runs, records)
        timed = {name: each for name, each in contenders.items() if name in LATENCY_OF}
        latencies = await session.latencies(timed, rows, seconds) if rows and seconds else []
    return Found(rows, latencies), session.failed


def faults(repeats: int) -> str:
    """Measure takeovers and restarts on a broker of their own; return their tables."""
    with tempfile.TemporaryDirectory(prefix="processor-bench-") as made:
        folder = Path(made)
        started = start_jvm(folder / "kafka")
        try:
            # What each worker logged is shown where one fails.
            with redirect_stdout(io.StringIO()):
                return takeover_tables(
                    takeovers(started, folder, repeats, say), restarts(started, folder, say)
                )
        finally:
            started.stop()


def compare(found: Found) -> None:
    """Print the ratios beside the committed ones; raises ClickException where one fell clearly."""
    if not FIGURES.exists():
        message = f"nothing to compare with: make bench writes {FIGURES.name}"
        raise click.ClickException(message)
    now, committed = ratios(found.rows, BASELINE), ratios(read_found(FIGURES).rows, BASELINE)
    for name, ratio in now.items():
        before = f"{committed[name]:.2f}" if name in committed else "not measured"
        click.echo(f"{name}: {ratio:.2f} of the pass-through; when last committed, {before}")
    if worse := fallen(now, committed):
        message = f"fell by more than {TOLERANCE:.0%}: {'; '.join(worse)}"
        raise click.ClickException(message)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--runs", default=2, show_default=True, help="How many turns; 0 for none.")
@click.option("--records", default=300_000, show_default=True, help="How many lines to load.")
@click.option(
    "--only",
    type=click.Choice([*OURS, *NAMES]),
    multiple=True,
    help="Measure these alone, and write no report.",
)
@click.option(
    "--latency", type=float, help="Seconds of each; 0 for none.  [default: 8; 0 with --only]"
)
@click.option("--takeovers", "repeats", default=3, show_default=True, help="How often; 0 for none.")
@click.option(
    "--scale", is_flag=True, help="What a record costs as sessions grow, too; in minutes."
)
@click.option("--short", is_flag=True, help="In two minutes compare with the committed figures.")
def main(  # noqa: PLR0913 - an option each
    *,
    runs: int,
    records: int,
    only: Sequence[str],
    latency: float | None,
    repeats: int,
    scale: bool,
    short: bool,
) -> None:
    """Measure the worker beside its peers and a pass-through; write benchmarks/report.md."""
    if short:
        runs, only = SHORT_RUNS, SHORT_OF
    names = only or (*OURS, *NAMES)
    seconds = latency if latency is not None else 0.0 if only else 8.0
    with tempfile.TemporaryDirectory(prefix="processor-bench-") as made:
        folder = Path(made)
        peers = find_peers(folder, names)
        for line in peers.left_out:
            say(f"left out: {line}")
        contenders = {name: it for name, it in {**OURS, **peers.found}.items() if name in names}
        try:
            found, failed = asyncio.run(measured(contenders, folder, runs, records, seconds))
        except ContenderError as error:
            raise click.ClickException(str(error)) from error
    click.echo(table(found.rows, BASELINE))
    click.echo(latency_section(found.latencies))
    if short:
        compare(found)
    elif not only:
        found.write(FIGURES)
        sections: list[str] = []
        for section in sections_of(found, repeats, is_scaled=scale):
            sections.append(section)
            # After each, so that a failure costs no more than what is yet to come.
            text = report(
                found,
                BASELINE,
                records=records,
                contenders=contenders,
                versions=peers.versions,
                left_out=[*peers.left_out, *failed],
                sections=sections,
            )
            (FOLDER / "report.md").write_text(text)
        say("written to benchmarks/report.md")


def sections_of(found: Found, repeats: int, *, is_scaled: bool) -> Iterator[str]:
    """Draw what was found, measure what has no turns, and give the report's sections."""
    yield draw(found, FOLDER / "plots")
    yield latency_section(found.latencies)
    if repeats:
        yield takeover_section(faults(repeats))
    if is_scaled:
        yield scale_section(scale_tables(list(measure_scale(list(PARTS), say))))
