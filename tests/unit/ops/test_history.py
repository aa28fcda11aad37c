"""Samples of what was counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.ops.counting import CountingMetrics
from processor.ops.history import History, quantile
from processor.ops.vitals import PartitionVitals, Vitals

BOUNDS = (1.0, 2.0, 4.0)


class Sampled:
    def __init__(self):
        self.metrics = CountingMetrics()
        self.partitions = []
        self.history = History(self.metrics, self.vitals)

    def vitals(self):
        return Vitals(5000, True, 0.0, (), self.partitions)  # noqa: FBT003 - it is joined


def test_sample_tells_what_came_since_the_last_one():
    it = Sampled()
    it.history.sample(10.0)
    it.metrics.increment("processor_records_total", 300, carried="value")
    it.metrics.increment("processor_records_total", 100, carried="text")
    it.metrics.increment("processor_routed_records_total", 200, format="pi")
    it.metrics.increment("processor_chunks_total", 10, flush="idle")
    it.metrics.increment("processor_rebalances_total")
    it.metrics.observe("processor_chunk_latency_seconds", 0.12)
    it.partitions = [PartitionVitals(0, "ready", lag_records=7), PartitionVitals(1, "opening")]
    it.history.sample(14.0)
    it.history.sample(16.0)
    _, busy, quiet = it.history.samples
    assert (busy.records_per_s, busy.chunks_per_s, busy.rebalances) == (150, 2.5, 1)
    assert 0.1 <= busy.latency_p50_s <= busy.latency_p99_s <= 0.15
    assert busy.lag_records == 7
    assert (quiet.records_per_s, quiet.rebalances, quiet.latency_p50_s) == (0, 0, None)


def test_what_was_sampled_long_ago_is_forgotten():
    it = Sampled()
    for number in range(1000):
        it.history.sample(number * 2.0)
    assert len(it.history.samples) == 300


def test_beat_is_as_old_as_the_last_sample():
    it = Sampled()
    assert it.history.beat_s_ago(100.0) == 0
    it.history.sample(100.0)
    assert it.history.beat_s_ago(130.0) == 30


def test_quantile_of_nothing_is_nothing():
    assert quantile(0.5, BOUNDS, [0, 0, 0, 0]) is None


def test_quantile_above_the_last_bound_is_that_bound():
    assert quantile(0.99, BOUNDS, [0, 0, 0, 3]) == 4


def test_quantile_lies_within_its_bucket_by_rank():
    assert quantile(0.5, BOUNDS, [0, 4, 0, 0]) == pytest.approx(1.5)
    assert quantile(0.5, BOUNDS, [2, 0, 2, 0]) == pytest.approx(1)


@given(st.lists(st.integers(0, 50), min_size=4, max_size=4), st.floats(0.01, 1), st.floats(0.01, 1))
def test_quantiles_do_not_fall(counts, one, other):
    low, high = (quantile(it, BOUNDS, counts) for it in sorted((one, other)))
    assert low is None or low <= high
