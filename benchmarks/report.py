"""Puts figures into tables, with all that someone needs to compare them with their own."""

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from benchmarks.contender import Contender
from benchmarks.figures import Found, Row, ratios, speedup
from benchmarks.latency import SETTLE_S, Latency
from benchmarks.load import MAX_LINE_BYTES, PARTITIONS, SESSIONS
from processor.demo.kafka_jvm import KAFKA_VERSION

PACKAGES = ("aiokafka", "faust-streaming", "msgspec")
HEAD = (
    "what",
    "k/CPU-s",
    "ratio",
    "warm k/CPU-s",
    "k/s",
    "k/CPU-s, whole",
    "start s",
    "peak RSS MB",
    "broker CPU-s per M",
    "changelog / input",
)
LATENCY_HEAD = (
    *("what", "load", "records/s", "chunks", "p50 ms", "p99 ms", "most ms"),
    "changelog / input",
)

_REPORT = """\
# Benchmark

{throughput}

Medians of the runs; each run's figures are in [figures.json](figures.json). `k/CPU-s` and `k/s`:
thousand records per CPU-second of the process and per second, start and end left out; `warm`: of
the second half. `whole` counts all. `ratio`: to `{baseline}` in the same run. `broker CPU-s per M`:
of the broker, for a million records. `changelog / input`: bytes of changelog on the broker's disk
per byte of input. Every output was judged before its figures were kept.{twice}
{sections}
## With what

- Input: {records:,} made transcript lines of up to {max_line_bytes:,} bytes, {sessions} sessions,
  {partitions} partitions; of some contenders a multiple, as below.
- Broker: {broker}, on the same machine.
- Machine: {cpu}, {cores} cores, {memory_gb:.0f} GB.
- Versions: Python {python}, {versions}.
- A worker in a backlog, as it is here to the last record, commits every 0.5 s.

{contenders}
{left_out}"""

_LATENCY = """
## From append to visible chunk

{table}

`load`: the rate of records, as a share of the `k/s` above. From the record that closed a chunk, as
it was due to be sent, to the chunk in the hands of a read_committed reader: what a record waits in
its open chunk for the next ones of its session is no delay of the worker. All chunks count that
closed {settle_s:g} s or more after records began to flow. Producer and reader take their share of
the same cores, most of it at high load.
"""

_TAKEOVERS = """
## When a worker stops, dies or hangs

{tables}

Two workers, 4 partitions, 400 records a second, a session timeout of 10 s; from the event until
each partition's committed offset had moved past where it stood, looked at four times a second. A
restart's CPU is a new worker's up to the first commit behind what it restored and replayed, less
that of one that finds nothing. The last row has `PROCESSOR_MAX_REPLAY_RECORDS=20000`, which bounds
each partition's replay.
"""

_SCALE = """
## As sessions grow

{tables}

In process, without a broker; each size in a process of its own.
"""


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *lines))


def table(rows: Sequence[Row], baseline: str) -> str:
    """Return a line for each run of each contender."""
    return markdown(
        ("run", *HEAD),
        (
            (f"{row.run}", *_cells(row, ratios([it for it in rows if it.run == row.run], baseline)))
            for row in rows
        ),
    )


def medians_table(found: Found, baseline: str) -> str:
    """Return a line for each contender, and how many runs it had."""
    compared = ratios(found.rows, baseline)
    return markdown(
        (*HEAD, "runs"), ((*_cells(row, compared), f"{row.run}") for row in found.medians())
    )


def _cells(row: Row, compared: Mapping[str, float]) -> Sequence[str]:
    it = row.figures
    return (
        row.name,
        f"{it.records_per_cpu_s / 1e3:.1f}",
        f"{compared[row.name]:.2f}" if row.name in compared else "",
        f"{it.warm_records_per_cpu_s / 1e3:.1f}",
        f"{it.records_per_s / 1e3:.1f}",
        f"{it.whole_records_per_cpu_s / 1e3:.1f}",
        f"{it.started_after_s:.1f}",
        f"{it.peak_rss_mb:.0f}",
        "" if it.broker_cpu_s is None else f"{it.broker_cpu_s / it.records * 1e6:.1f}",
        _share(it.changelog_ratio),
    )


def _share(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2%}"


def latency_section(latencies: Sequence[Latency]) -> str:
    """Return the section with a line for each contender and load; of none, nothing."""
    if not latencies:
        return ""
    lines = [
        (
            it.name,
            f"{it.load:.0%}",
            f"{it.rate:,.0f}",
            f"{it.chunks:,}",
            f"{it.p50_ms:.0f}",
            f"{it.p99_ms:.0f}",
            f"{it.most_ms:.0f}",
            _share(it.changelog_ratio),
        )
        for it in latencies
    ]
    return _LATENCY.format(table=markdown(LATENCY_HEAD, lines), settle_s=SETTLE_S)


def takeover_section(tables: str) -> str:
    """Return the section on takeovers and restarts."""
    return _TAKEOVERS.format(tables=tables)


def scale_section(tables: str) -> str:
    """Return the section on what a record costs as sessions grow."""
    return _SCALE.format(tables=tables)


def report(  # noqa: PLR0913 - all that is said
    found: Found,
    baseline: str,
    *,
    records: int,
    contenders: Mapping[str, Contender],
    versions: Mapping[str, str],
    left_out: Sequence[str],
    sections: Sequence[str],
) -> str:
    """Return the whole report in Markdown."""
    installed = {package: version(package) for package in PACKAGES} | dict(versions)
    twice = speedup(ratios(found.rows, baseline))
    lines = [(name, it.about, f"{records * it.scale:,.0f}") for name, it in contenders.items()]
    return _REPORT.format(
        throughput=medians_table(found, baseline),
        baseline=baseline,
        twice=""
        if twice is None
        else f" By CPU-seconds two workers do {twice:.2f} times what one does.",
        sections="".join(sections),
        records=records,
        max_line_bytes=MAX_LINE_BYTES,
        sessions=SESSIONS,
        partitions=PARTITIONS,
        broker="given by KAFKA_BOOTSTRAP_SERVERS"
        if os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
        else f"Apache Kafka {KAFKA_VERSION} on the JVM",
        cpu=_cpu_model(),
        cores=os.cpu_count(),
        memory_gb=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9,
        python=platform.python_version(),
        versions=", ".join(f"{package} {it}" for package, it in installed.items()),
        contenders=markdown(("what", "how", "records"), lines),
        left_out="".join(f"\nLeft out: {line}." for line in left_out),
    )


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
