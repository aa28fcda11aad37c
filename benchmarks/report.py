"""Puts figures into a table, with all that someone needs to compare them with their own."""

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from benchmarks.load import MAX_LINE_BYTES, PARTITIONS, SESSIONS
from benchmarks.measure import Figures
from processor.demo.kafka_jvm import KAFKA_VERSION

PACKAGES = ("aiokafka", "faust-streaming", "msgspec")
HEAD = ("run", "what", "k/CPU-s", "ratio", "k/s", "k/CPU-s, whole", "start s", "peak RSS MB")


@dataclass(frozen=True, slots=True)
class Row:
    """One contender's figures in one run."""

    run: int
    name: str
    figures: Figures


_TAKEOVERS = """
## When a worker stops, dies or hangs

{tables}

Two workers, 4 partitions, 400 records a second, a session timeout of 10 s; from the event until
each partition's committed offset had moved past where it stood, looked at four times a second. A
restart's CPU is a new worker's up to the first commit behind what it restored and replayed, less
that of one that finds nothing. The last row has `PROCESSOR_MAX_REPLAY_RECORDS=20000`, which bounds
each partition's replay.

## With what
"""


def table(rows: Sequence[Row], baseline: str) -> str:
    """Return a Markdown table; the ratio is to the baseline's ``k/CPU-s`` in the same run."""
    base = {row.run: row.figures.records_per_cpu_s for row in rows if row.name == baseline}
    lines = [HEAD, tuple("---" for _ in HEAD)]
    for row in rows:
        found = row.figures
        is_compared = row.name != baseline and row.run in base
        ratio = f"{found.records_per_cpu_s / base[row.run]:.2f}" if is_compared else ""
        lines.append(
            (
                str(row.run),
                row.name,
                f"{found.records_per_cpu_s / 1e3:.1f}",
                ratio,
                f"{found.records_per_s / 1e3:.1f}",
                f"{found.whole_records_per_cpu_s / 1e3:.1f}",
                f"{found.started_after_s:.1f}",
                f"{found.peak_rss_mb:.0f}",
            )
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def report(
    rows: Sequence[Row], baseline: str, records: int, commit_interval_s: float, takeovers: str
) -> str:
    """Return the whole report in Markdown."""
    given = "given by KAFKA_BOOTSTRAP_SERVERS"
    broker = (
        given
        if os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
        else f"Apache Kafka {KAFKA_VERSION} on the JVM"
    )
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    return f"""\
# Benchmark

{table(rows, baseline)}

`k/CPU-s` and `k/s`: thousand records per CPU-second of the process and per second, from the first
progress seen to the end. `whole` counts the start too. `ratio`: to `{baseline}` in the same run.
Every output was judged before its figures were kept.
{_TAKEOVERS.format(tables=takeovers) if takeovers else ""}
- Input: {records:,} made transcript lines of up to {MAX_LINE_BYTES:,} bytes, {SESSIONS} sessions, \
{PARTITIONS} partitions.
- Each: exactly once, a commit every {commit_interval_s:g} s, one process. `worker` and
  `worker-zstd` count tokens by `chars_over_four`. While behind, as here to the last record, a
  worker commits every 0.5 s.
- Broker: {broker}, on the same machine.
- Machine: {_cpu_model()}, {os.cpu_count()} cores, {_memory_gb():.0f} GB.
- Versions: Python {platform.python_version()}, {versions}.
"""


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
