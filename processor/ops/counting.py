"""Counts in memory: what the worker adds to, and what is read when somebody asks."""

from bisect import bisect_left
from itertools import accumulate, product
from typing import Final

from processor.metrics import METRICS, MetricName


class Histogram:
    """How many observations fell into each bucket, and their sum.

    Args:
        bounds: Upper bounds of the buckets, rising; one without a bound comes on top.
    """

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds: Final = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Add one."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def cumulative(self) -> list[tuple[str, float]]:
        """Return each bucket's bound, as Prometheus writes it, and how many lie at or below."""
        bounds = [*(str(float(it)) for it in self.bounds), "+Inf"]
        return list(zip(bounds, map(float, accumulate(self.counts)), strict=True))


class CountingMetrics:
    """``Metrics`` in memory; everything in the table is there from the start.

    A counter that only appears with its first count hides that count from ``rate()``.
    """

    def __init__(self) -> None:
        self.counters: dict[MetricName, dict[tuple[str, ...], int]] = {}
        self.histograms: dict[MetricName, Histogram] = {}
        for name, metric in METRICS.items():
            if metric.kind == "counter":
                self.counters[name] = dict.fromkeys(product(*metric.tags.values()), 0)
            elif metric.kind == "histogram":
                self.histograms[name] = Histogram(metric.buckets)

    def increment(self, name: MetricName, value: int = 1, **tags: str) -> None:
        """Add ``value`` to a counter."""
        counts = self.counters[name]
        key = tuple([tags[it] for it in METRICS[name].tags])
        counts[key] = counts.get(key, 0) + value

    def observe(self, name: MetricName, value: float) -> None:
        """Add one observation to a histogram."""
        self.histograms[name].observe(value)

    def total(self, name: MetricName) -> int:
        """Return a counter's value over all tags."""
        return sum(self.counters[name].values())
