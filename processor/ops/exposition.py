"""The worker's metrics in Prometheus's formats: counts as they are, gauges read for each scrape."""

import platform
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from processor.metrics import METRICS, MetricName
from processor.ops.counting import CountingMetrics
from processor.ops.vitals import PartitionVitals, Vitals

_OF_PARTITION: Final[dict[MetricName, Callable[[PartitionVitals], float | None]]] = {
    "processor_consumer_lag_records": lambda it: it.lag_records,
    "processor_consumer_lag_seconds": lambda it: it.lag_s,
    "processor_last_progress_timestamp_seconds": lambda it: it.progressed_at_ms / 1000 or None,
    "processor_sessions": lambda it: it.session_count,
    "processor_open_sessions": lambda it: it.open_session_count,
    "processor_open_records": lambda it: it.open_record_count,
    "processor_unaccounted_records": lambda it: it.unaccounted_record_count,
    "processor_oldest_open_session_age_seconds": lambda it: it.oldest_open_s,
    "processor_overdue_seconds": lambda it: it.overdue_s,
    "processor_staged_bytes": lambda it: it.staged_bytes,
}


class Exposition(Collector):
    """All metrics of one worker, in a registry of its own.

    Args:
        metrics: Its counts.
        topic: The topic that it reads.
        vitals: Reads the worker as it is now.
        is_ready: Tells whether ``/readyz`` would say yes.
    """

    def __init__(
        self,
        metrics: CountingMetrics,
        topic: str,
        vitals: Callable[[], Vitals],
        is_ready: Callable[[], bool],
    ) -> None:
        self._metrics = metrics
        self._topic = topic
        self._vitals = vitals
        self._is_ready = is_ready
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)
        packages = ("poimen-processor", "faust-streaming", "aiokafka")
        ours, *libraries = map(version, packages)
        self._build = (ours, platform.python_version(), *libraries)

    def text(self, accept: str) -> tuple[bytes, str]:
        """Return all metrics in the format that ``accept`` asks for, and its content type."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type

    def collect(self) -> Iterator[Metric]:
        """Yield every metric of the table."""
        for name, counts in self._metrics.counters.items():
            counter = CounterMetricFamily(
                name, METRICS[name].help, labels=tuple(METRICS[name].tags)
            )
            for values, count in counts.items():
                counter.add_metric(values, count)
            yield counter
        for name, histogram in self._metrics.histograms.items():
            family = HistogramMetricFamily(name, METRICS[name].help)
            family.add_metric((), histogram.cumulative(), histogram.total)
            yield family
        yield from self._gauges()

    def _gauges(self) -> Iterator[Metric]:
        vitals = self._vitals()
        yield _gauge("processor_build_info", self._build, 1)
        yield _gauge("processor_ready", (), float(self._is_ready()))
        yield _gauge("processor_assigned_partitions", (), len(vitals.partitions))
        for name, read in _OF_PARTITION.items():
            family = GaugeMetricFamily(name, METRICS[name].help, labels=tuple(METRICS[name].tags))
            for it in vitals.partitions:
                if (value := read(it)) is not None:
                    family.add_metric((self._topic, str(it.partition)), value)
            yield family


def _gauge(name: MetricName, tags: tuple[str, ...], value: float) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, METRICS[name].help, labels=tuple(METRICS[name].tags))
    family.add_metric(tags, value)
    return family
