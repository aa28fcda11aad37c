"""The names of all metrics, what each is, and where counts go. No measuring."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from processor.core.chunks import FlushReason
from processor.core.records import Carried

MetricName = Literal[
    "processor_records_total",
    "processor_dead_letters_total",
    "processor_duplicates_total",
    "processor_session_mismatches_total",
    "processor_routed_records_total",
    "processor_unkeyed_telemetry_total",
    "processor_session_ends_total",
    "processor_chunks_total",
    "processor_omitted_records_total",
    "processor_chunk_tokens",
    "processor_records_per_chunk",
    "processor_chunk_latency_seconds",
    "processor_transactions_total",
    "processor_transaction_duration_seconds",
    "processor_partition_openings_total",
    "processor_rebalances_total",
    "processor_rebalance_duration_seconds",
    "processor_build_info",
    "processor_ready",
    "processor_assigned_partitions",
    "processor_consumer_lag_records",
    "processor_consumer_lag_seconds",
    "processor_last_progress_timestamp_seconds",
    "processor_sessions",
    "processor_open_sessions",
    "processor_open_records",
    "processor_unaccounted_records",
    "processor_oldest_open_session_age_seconds",
    "processor_overdue_seconds",
    "processor_staged_bytes",
]


@dataclass(frozen=True, slots=True)
class Metric:
    """What a metric is.

    Attributes:
        kind: What Prometheus calls it.
        help: What it tells, for whoever reads it.
        tags: Its tags, each with the values that it is known to take, which are counted from 0.
        buckets: Upper bounds of a histogram's buckets, in its own unit.
    """

    kind: Literal["counter", "gauge", "histogram"]
    help: str
    tags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    buckets: tuple[float, ...] = ()


_PARTITION: Final[Mapping[str, tuple[str, ...]]] = {"topic": (), "partition": ()}

#: Base units, `_total` for counters, and no tag whose values grow: never a session.
METRICS: Final[Mapping[MetricName, Metric]] = {
    "processor_records_total": Metric(
        "counter",
        "Records of sessions, by how a chunk carries them.",
        {"carried": tuple(Carried)},
    ),
    "processor_dead_letters_total": Metric(
        "counter",
        "Records set aside because they have no session, by why.",
        {"reason": ("no-key", "key-not-utf8", "format", "too-large")},
    ),
    "processor_duplicates_total": Metric(
        "counter", "Records left out because they repeat one, by record-id."
    ),
    "processor_session_mismatches_total": Metric(
        "counter", "Records that name another session than their key, which counts."
    ),
    "processor_routed_records_total": Metric(
        "counter",
        "Records made of telemetry, by its format.",
        {"format": ("claude", "codex", "pi", "otel", "jsonl")},
    ),
    "processor_unkeyed_telemetry_total": Metric(
        "counter", "Telemetry without a key, in a topic of several partitions."
    ),
    "processor_session_ends_total": Metric("counter", "Ends of sessions read."),
    "processor_chunks_total": Metric(
        "counter",
        "Chunks committed, by what closed them.",
        {"flush": tuple(FlushReason)},
    ),
    "processor_omitted_records_total": Metric(
        "counter", "Records too large for the chunks topic, left out of their chunk."
    ),
    "processor_chunk_tokens": Metric(
        "histogram",
        "Tokens of each chunk committed.",
        buckets=(100, 250, 500, 1000, 2000, 3000, 4000, 4500, 4750, 5000, 7500, 10_000, 50_000),
    ),
    "processor_records_per_chunk": Metric(
        "histogram",
        "Records of each chunk committed.",
        buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000),
    ),
    "processor_chunk_latency_seconds": Metric(
        "histogram",
        "Of each transaction in which records closed chunks: from the append of the first record "
        "of the fetch that closed one, to the commit. No chunk in it took longer.",
        buckets=(0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2.5, 5, 10, 30, 60, 300, 3600),
    ),
    "processor_transactions_total": Metric(
        "counter", "Transactions, by how they ended.", {"result": ("committed", "failed")}
    ),
    "processor_transaction_duration_seconds": Metric(
        "histogram",
        "How long each committed transaction took.",
        buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15),
    ),
    "processor_partition_openings_total": Metric(
        "counter",
        "Times a partition was opened: anew from the changelog, or from what was held.",
        {"kind": ("fresh", "resumed")},
    ),
    "processor_rebalances_total": Metric("counter", "Rebalances, the first joining included."),
    "processor_rebalance_duration_seconds": Metric(
        "histogram",
        "From the revocation until every partition assigned is ready.",
        buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120),
    ),
    "processor_build_info": Metric(
        "gauge", "Always 1; what runs.", {"version": (), "python": (), "faust": (), "aiokafka": ()}
    ),
    "processor_ready": Metric("gauge", "1 while /readyz says yes, else 0."),
    "processor_assigned_partitions": Metric("gauge", "Partitions that the group gave to us."),
    "processor_consumer_lag_records": Metric(
        "gauge", "Offsets between our position and the last stable offset.", _PARTITION
    ),
    "processor_consumer_lag_seconds": Metric(
        "gauge",
        "How far behind in time: 0 when nothing is left to read, else the time since the last "
        "record processed was appended, or since nothing was left, whichever is less.",
        _PARTITION,
    ),
    "processor_last_progress_timestamp_seconds": Metric(
        "gauge",
        "When a commit last moved the partition on, or it was first opened here.",
        _PARTITION,
    ),
    "processor_sessions": Metric("gauge", "Sessions known.", _PARTITION),
    "processor_open_sessions": Metric("gauge", "Sessions with an open chunk.", _PARTITION),
    "processor_open_records": Metric("gauge", "Records in open chunks.", _PARTITION),
    "processor_unaccounted_records": Metric(
        "gauge",
        "Records read that are in no chunk, not open and no duplicates; not 0 stops the worker.",
        _PARTITION,
    ),
    "processor_oldest_open_session_age_seconds": Metric(
        "gauge", "Time since the first record of the oldest open chunk.", _PARTITION
    ),
    "processor_overdue_seconds": Metric(
        "gauge", "How long the open chunk due first has been due, by idle or age.", _PARTITION
    ),
    "processor_staged_bytes": Metric(
        "gauge", "Bytes of output that wait for the next transaction.", _PARTITION
    ),
}


class Metrics(Protocol):
    """Where counts go."""

    def increment(self, name: MetricName, value: int = 1, **tags: str) -> None:
        """Add ``value`` to a counter."""
        ...

    def observe(self, name: MetricName, value: float) -> None:
        """Add one observation to a histogram."""
        ...


class NoMetrics:
    """Counts nothing."""

    def increment(self, name: MetricName, value: int = 1, **tags: str) -> None:
        """Do nothing."""

    def observe(self, name: MetricName, value: float) -> None:
        """Do nothing."""
