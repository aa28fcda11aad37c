"""The last ten minutes of a worker, sampled: what a page that has just been opened shows."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from processor.ops.counting import CountingMetrics
from processor.ops.vitals import Vitals

INTERVAL_S: Final = 2.0
_SAMPLES: Final = 300


class Sample(NamedTuple):
    """What happened in one interval, and how it ended.

    Attributes:
        at_ms: Its end (Unix milliseconds).
        records_per_s: Records of sessions committed, chunked or routed.
        chunks_per_s: Chunks committed.
        latency_p50_s: Median of ``processor_chunk_latency_seconds``; ``None`` without any.
        latency_p99_s: Its 99th percentile.
        lag_records: Offsets behind, all partitions together.
        rebalances: How many began.
    """

    at_ms: int
    records_per_s: float
    chunks_per_s: float
    latency_p50_s: float | None
    latency_p99_s: float | None
    lag_records: int
    rebalances: int


class _Totals(NamedTuple):
    records: int
    chunks: int
    rebalances: int
    latencies: list[int]


class History:
    """Samples what is counted, and shows by doing so that the event loop runs.

    Args:
        metrics: The counts.
        vitals: Reads the worker as it is now.
    """

    def __init__(self, metrics: CountingMetrics, vitals: Callable[[], Vitals]) -> None:
        self.samples: deque[Sample] = deque(maxlen=_SAMPLES)
        self._metrics = metrics
        self._vitals = vitals
        self._before = self._totals()
        self._sampled_at_s: float | None = None

    def beat_s_ago(self, now_s: float) -> float:
        """Return how long ago the last sample was taken."""
        return 0.0 if self._sampled_at_s is None else now_s - self._sampled_at_s

    async def sample_forever(self) -> None:
        """Take a sample in every interval."""
        now_s = asyncio.get_running_loop().time
        self._sampled_at_s = now_s()
        while True:
            await asyncio.sleep(INTERVAL_S)
            self.sample(now_s())

    def sample(self, now_s: float) -> None:
        """Take one; ``now_s`` is a monotonic time."""
        passed_s = max(self.beat_s_ago(now_s), INTERVAL_S / 2)
        before, now, vitals = self._before, self._totals(), self._vitals()
        buckets = [it - was for it, was in zip(now.latencies, before.latencies, strict=True)]
        bounds = self._metrics.histograms["processor_chunk_latency_seconds"].bounds
        self.samples.append(
            Sample(
                vitals.at_ms,
                round((now.records - before.records) / passed_s, 1),
                round((now.chunks - before.chunks) / passed_s, 2),
                quantile(0.5, bounds, buckets),
                quantile(0.99, bounds, buckets),
                vitals.lag_records,
                now.rebalances - before.rebalances,
            )
        )
        self._before, self._sampled_at_s = now, now_s

    def _totals(self) -> _Totals:
        metrics = self._metrics
        return _Totals(
            # A process either chunks or routes.
            metrics.total("processor_records_total")
            + metrics.total("processor_routed_records_total"),
            metrics.total("processor_chunks_total"),
            metrics.total("processor_rebalances_total"),
            list(metrics.histograms["processor_chunk_latency_seconds"].counts),
        )


def quantile(share: float, bounds: Sequence[float], counts: Sequence[int]) -> float | None:
    """Return the value that ``share`` of what was observed lies below, as Prometheus estimates it.

    Args:
        share: From 0 to 1.
        bounds: Upper bounds of the buckets.
        counts: Observations in each, and in one more above the last bound.

    Returns:
        A value from within its bucket, the last bound for one above it; ``None`` for nothing
        observed.
    """
    rank = share * sum(counts)
    if not rank:
        return None
    below = 0
    for index, count in enumerate(counts[:-1]):
        if below + count >= rank:
            lower = bounds[index - 1] if index else 0.0
            return round(lower + (bounds[index] - lower) * (rank - below) / count, 4)
        below += count
    return bounds[-1]
