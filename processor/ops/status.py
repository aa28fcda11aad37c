"""What the status page shows, as JSON. Names and numbers alone: no record content."""

import time
from collections.abc import Iterable, Sequence
from heapq import nlargest
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from processor.ops.counting import CountingMetrics
from processor.ops.health import Problem
from processor.ops.history import INTERVAL_S, Sample
from processor.ops.vitals import Vitals
from processor.protocol.partition import RECENT_CHUNKS, Partition
from processor.protocol.state import PartitionState

_BINS: Final = 10
#: How full a hundred thousand open chunks are takes 30 ms to find out: at most this share of time.
_FILL_SHARE: Final = 0.02


def chunks_view(partitions: Iterable[Partition]) -> list[dict[str, Any]]:
    """Return the last chunks of all partitions, the newest first."""
    recent = chain.from_iterable(
        ((at_ms, it.number, chunk) for at_ms, chunk in it.recent) for it in partitions
    )
    return [
        {"committed_at_ms": at_ms, "partition": number, **chunk._asdict()}
        for at_ms, number, chunk in nlargest(RECENT_CHUNKS, recent, key=itemgetter(0))
    ]


def history_view(samples: Sequence[Sample]) -> dict[str, Any]:
    """Return the samples by what they tell, oldest first."""
    columns = zip(*samples, strict=True) if samples else ([] for _ in Sample._fields)
    return {
        "interval_s": INTERVAL_S,
        **{name: list(values) for name, values in zip(Sample._fields, columns, strict=True)},
    }


def health_view(problems: Sequence[Problem]) -> dict[str, Any]:
    """Return the answer of a probe."""
    return {"ok": not problems, "problems": [it._asdict() for it in problems]}


def counts_view(metrics: CountingMetrics) -> dict[str, Any]:
    """Return what has been counted since the start, by the one tag where there is one."""

    def by_tag(name: Any) -> dict[str, int]:  # noqa: ANN401 - a MetricName
        return {key: count for (key,), count in metrics.counters[name].items()}

    return {
        "records": by_tag("processor_records_total"),
        "chunks": by_tag("processor_chunks_total"),
        "dead_letters": by_tag("processor_dead_letters_total"),
        "transactions": by_tag("processor_transactions_total"),
        "rebalances": metrics.total("processor_rebalances_total"),
    }


def partitions_view(vitals: Vitals) -> list[dict[str, Any]]:
    """Return the partitions."""
    return [it._asdict() for it in vitals.partitions]


class Fill:
    """How full open chunks are, found out again only now and then."""

    def __init__(self, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._bins = [0] * _BINS
        self._next_at_s = 0.0

    def view(self, partitions: Iterable[Partition]) -> dict[str, Any]:
        """Return how many open chunks hold up to each tenth of the budget."""
        began_s = time.monotonic()
        if began_s >= self._next_at_s:
            self._bins = self._count(partitions)
            ended_s = time.monotonic()
            self._next_at_s = ended_s + (ended_s - began_s) / _FILL_SHARE
        return {"max_tokens": self._max_tokens, "sessions": self._bins}

    def _count(self, partitions: Iterable[Partition]) -> list[int]:
        bins = [0] * _BINS
        for partition in partitions:
            if isinstance(partition.state, PartitionState):
                for tokens in partition.state.sessions.open_token_counts():
                    bins[min(tokens * _BINS // self._max_tokens, _BINS - 1)] += 1
        return bins
