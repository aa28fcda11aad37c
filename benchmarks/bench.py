"""Throughput of the worker, beside a pass-through that does nothing, in turns on one broker.

Starts Apache Kafka on the JVM, or uses the one that ``KAFKA_BOOTSTRAP_SERVERS`` names. Each run has
a group and topics of its own. What came out is judged before a figure is shown.
"""

import asyncio
import hashlib
import io
import os
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, redirect_stdout
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import click
from aiokafka.admin import AIOKafkaAdminClient

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the oracle is a test's, and no part of the package

from benchmarks.load import create_topic, load  # noqa: E402 - needs the path above
from benchmarks.measure import ContenderError, Figures, committed, measure  # noqa: E402 - likewise
from benchmarks.report import Row, report, table  # noqa: E402 - likewise
from benchmarks.takeover import restarts, takeover_tables, takeovers  # noqa: E402 - likewise
from processor.demo.kafka_jvm import start_jvm  # noqa: E402 - likewise
from tests.e2e.log_reading import read_log  # noqa: E402 - likewise
from tests.e2e.oracle import judge  # noqa: E402 - likewise

COMMIT_INTERVAL_S: Final = 0.1
PATIENCE_S: Final = 60.0
BASELINE: Final = "passthrough"


@dataclass(frozen=True, slots=True)
class Run:
    """Where one run reads and writes."""

    bootstrap: str
    records_topic: str
    name: str
    """Application id, consumer group, and what the names of its topics begin with."""

    @property
    def out_topic(self) -> str:
        """Return where it writes."""
        return f"{self.name}-chunks"

    @property
    def dead_letter_topic(self) -> str:
        """Return where it sets aside what has no session."""
        return f"{self.name}-dead-letter"


@dataclass(frozen=True, slots=True)
class Contender:
    """Something to measure: how to prepare, start and judge it."""

    prepare: Callable[[Run], Awaitable[None]]
    command: Callable[[Run], list[str]]
    environment: Callable[[Run], dict[str, str]]
    judge: Callable[[Run], Awaitable[str]]
    """Return what was found right; raises ContenderError on anything else."""


async def prepare_passthrough(run: Run) -> None:
    """Create its output topic."""
    await create_topic(run.bootstrap, run.out_topic)


async def prepare_worker(run: Run) -> None:
    """Leave it to the worker, which creates its topics itself."""


def passthrough_command(run: Run) -> list[str]:
    """Return the pass-through's command line."""
    where = [run.bootstrap, run.records_topic, run.out_topic, run.name]
    return [sys.executable, str(ROOT / "benchmarks/passthrough.py"), *where, f"{COMMIT_INTERVAL_S}"]


def worker_command(run: Run) -> list[str]:
    """Return the worker's command line: all it needs is in its environment."""
    return [sys.executable, "-m", "processor", "worker"]


def no_environment(run: Run) -> dict[str, str]:
    """Return nothing."""
    return {}


def worker_environment(run: Run) -> dict[str, str]:
    """Return the worker's settings: the defaults, as far as the run leaves them."""
    return {
        "KAFKA_BOOTSTRAP_SERVERS": run.bootstrap,
        "PROCESSOR_APP_ID": run.name,
        "PROCESSOR_RECORDS_TOPIC": run.records_topic,
        "PROCESSOR_CHUNKS_TOPIC": run.out_topic,
        "PROCESSOR_DEAD_LETTER_TOPIC": run.dead_letter_topic,
        "PROCESSOR_TOKEN_COUNTER": "chars_over_four",
        "PROCESSOR_COMMIT_INTERVAL_S": f"{COMMIT_INTERVAL_S}",
    }


def qwen_environment(run: Run) -> dict[str, str]:
    """Return the worker's settings with its default counter."""
    return uncompressed_environment(run) | {"PROCESSOR_TOKEN_COUNTER": "qwen2.5"}


def uncompressed_environment(run: Run) -> dict[str, str]:
    """Return the worker's settings without compression, which the pass-through has none of."""
    return worker_environment(run) | {"PROCESSOR_COMPRESSION": "none"}


async def judge_passthrough(run: Run) -> str:
    """Compare, partition by partition, all bytes that went in and came out."""
    sums = []
    for topic in (run.records_topic, run.out_topic):
        seen: dict[int, hashlib._Hash] = {}
        for each in await read_log(run.bootstrap, topic, settled=True, patience_s=PATIENCE_S):
            # Lines hold no line break, so blobs joined by one are the lines ended by one.
            seen.setdefault(each.partition, hashlib.sha256()).update((each.value or b"") + b"\n")
        sums.append({partition: whole.hexdigest() for partition, whole in seen.items()})
    if sums[0] != sums[1]:
        message = f"{run.out_topic} does not hold the bytes of {run.records_topic}"
        raise ContenderError(message)
    return f"all bytes of {len(sums[0])} partitions came through, in order"


async def judge_worker(run: Run) -> str:
    """Let the tests' oracle judge every chunk."""
    verdict = await judge(
        run.bootstrap,
        run.records_topic,
        run.out_topic,
        run.dead_letter_topic,
        patience_s=PATIENCE_S,
    )
    if not verdict.ok or verdict.dead_letters:
        raise ContenderError(str(verdict))
    return str(verdict)


CONTENDERS: Final = {
    BASELINE: Contender(
        prepare_passthrough, passthrough_command, no_environment, judge_passthrough
    ),
    "worker": Contender(prepare_worker, worker_command, uncompressed_environment, judge_worker),
    "worker-qwen2.5": Contender(prepare_worker, worker_command, qwen_environment, judge_worker),
    "worker-zstd": Contender(prepare_worker, worker_command, worker_environment, judge_worker),
}


@asynccontextmanager
async def broker(folder: Path) -> AsyncIterator[str]:
    """Give the address of the broker named by the environment, or of one started here."""
    named = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if named:
        yield named
        return
    started = await asyncio.to_thread(start_jvm, folder / "kafka")
    try:
        yield started.bootstrap
    finally:
        await asyncio.to_thread(started.stop)


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


def say(line: str) -> None:
    """Show how far it is."""
    click.echo(line, err=True)


async def run_once(name: str, run: Run, folder: Path, total: int) -> Figures:
    """Measure one contender once and judge what it wrote."""
    contender = CONTENDERS[name]
    await contender.prepare(run)
    admin = AIOKafkaAdminClient(bootstrap_servers=run.bootstrap)
    await admin.start()
    try:
        measured = await measure(
            contender.command(run),
            contender.environment(run),
            folder / f"{run.name}.log",
            partial(committed, admin, run.name, run.records_topic),
            total,
        )
    finally:
        await admin.close()
    click.echo(f"{run.name}: {await contender.judge(run)}", err=True)
    return measured


async def bench(names: list[str], runs: int, total: int) -> list[Row]:
    """Measure the contenders in turns, so that both see the same state of the machine."""
    rows = []
    tag = uuid.uuid4().hex[:6]  # a given broker may hold topics of an earlier bench
    with tempfile.TemporaryDirectory(prefix="processor-bench-") as made:
        folder = Path(made)
        async with broker(folder) as bootstrap:
            topic = f"bench-{tag}-records"
            value_bytes = await load(bootstrap, topic, total)
            click.echo(f"loaded {total:,} lines, {value_bytes / total:.0f} bytes mean", err=True)
            for number in range(1, runs + 1):
                for name in names:
                    run = Run(bootstrap, topic, f"bench-{tag}-{name}-{number}")
                    rows.append(Row(number, name, await run_once(name, run, folder, total)))
    return rows


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--runs", default=2, show_default=True, help="How many turns; 0 for none.")
@click.option("--records", default=300_000, show_default=True, help="How many lines to load.")
@click.option("--only", type=click.Choice(list(CONTENDERS)), help="Measure this one alone.")
@click.option(
    "--takeovers", "repeats", default=3, show_default=True, help="How often each; 0 for none."
)
def main(runs: int, records: int, only: str | None, repeats: int) -> None:
    """Measure throughput beside a pass-through, then takeovers; write benchmarks/report.md."""
    names = [only] if only else list(CONTENDERS)
    try:
        rows = asyncio.run(bench(names, runs, records)) if runs else []
    except ContenderError as error:
        raise click.ClickException(str(error)) from error
    click.echo(table(rows, BASELINE))
    tables = faults(repeats) if repeats and not only else ""
    click.echo(tables)
    path = ROOT / "benchmarks/report.md"
    path.write_text(report(rows, BASELINE, records, COMMIT_INTERVAL_S, tables))
    click.echo(f"written to {path.relative_to(ROOT)}", err=True)


if __name__ == "__main__":
    main()
