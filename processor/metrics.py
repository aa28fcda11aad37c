"""The names of all metrics, and where they go. No measuring."""

from typing import Literal, Protocol

MetricName = Literal[
    # Counter: records of sessions, by how a chunk carries them. Tags: carried
    "processor_records_total",
    # Counter: records set aside. Tags: reason
    "processor_dead_letters_total",
    # Counter: records left out because they repeat one, by record-id.
    "processor_duplicates_total",
    # Counter: records that name another session than their key, under which they are chunked.
    "processor_session_mismatches_total",
    # Counter: ends of sessions read.
    "processor_session_ends_total",
    # Counter: chunks committed. Tags: flush
    "processor_chunks_total",
    # Counter: records too large for the chunks topic, left out of their chunk.
    "processor_omitted_records_total",
    # Counter: transactions. Tags: result (committed, failed)
    "processor_transactions_total",
    # Counter: times a partition was opened. Tags: kind (fresh, resumed)
    "processor_partition_openings_total",
]


class Metrics(Protocol):
    """Where counts go."""

    def increment(self, name: MetricName, value: int = 1, **tags: str) -> None:
        """Add ``value`` to a counter."""
        ...


class NoMetrics:
    """Counts nothing."""

    def increment(self, name: MetricName, value: int = 1, **tags: str) -> None:
        """Do nothing."""
