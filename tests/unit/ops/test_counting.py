"""Counts in memory, and what Prometheus is given of them."""

from pathlib import Path
from typing import get_args

import pytest
from prometheus_client.parser import text_string_to_metric_families

import processor
from processor.core.errors import RecordError
from processor.formats import FORMATS
from processor.metrics import METRICS, MetricName
from processor.ops.counting import CountingMetrics
from processor.ops.vitals import PartitionVitals
from tests.unit.ops.seeing import ALL_KNOWN, exposition


def scraped(metrics, *partitions):
    """Return the value of each series, by its name and its labels' values, in labels' order."""
    text, _ = exposition(metrics, *partitions).text("")
    return {
        (it.name, *it.labels.values()): it.value
        for family in text_string_to_metric_families(text.decode())
        for it in family.samples
    }


def test_table_tells_of_every_metric():
    assert set(METRICS) == set(get_args(MetricName))


@pytest.mark.parametrize(("name", "metric"), METRICS.items())
def test_name_has_the_prefix_and_a_counter_its_ending(name, metric):
    assert name.startswith("processor_")
    assert name.endswith("_total") == (metric.kind == "counter")
    assert bool(metric.buckets) == (metric.kind == "histogram")
    assert not {"session", "key", "offset"} & set(metric.tags)


def test_known_values_of_tags_are_those_that_the_code_gives():
    def known(name, tag):
        return set(METRICS[name].tags[tag])

    reasons = {it.reason for it in RecordError.__subclasses__()}
    assert known("processor_dead_letters_total", "reason") == reasons
    assert known("processor_routed_records_total", "format") == set(FORMATS)


def test_every_metric_is_there_before_anything_happened():
    found = {name for name, *_ in scraped(CountingMetrics(), ALL_KNOWN)}
    series = {f"{it}_bucket" if METRICS[it].kind == "histogram" else it for it in METRICS}
    assert series <= found


def test_every_metric_is_given_by_some_code():
    files = set(Path(processor.__file__).parent.rglob("*.py")) - {Path(processor.metrics.__file__)}
    code = "".join(it.read_text() for it in files)
    assert [name for name in METRICS if f'"{name}"' not in code] == []


def test_counter_that_nothing_has_counted_is_0():
    counts = scraped(CountingMetrics())
    assert counts["processor_chunks_total", "tokens"] == 0
    assert counts["processor_rebalances_total",] == 0


def test_counts_add_up_by_tag_and_one_that_is_new_is_taken_too():
    metrics = CountingMetrics()
    metrics.increment("processor_chunks_total", 2, flush="idle")
    metrics.increment("processor_chunks_total", flush="idle")
    metrics.increment("processor_chunks_total", flush="whim")
    counts = scraped(metrics)
    assert counts["processor_chunks_total", "idle"] == 3
    assert counts["processor_chunks_total", "whim"] == 1
    assert metrics.total("processor_chunks_total") == 4


def test_tags_that_a_metric_does_not_have_are_refused():
    with pytest.raises(KeyError):
        CountingMetrics().increment("processor_chunks_total", reason="idle")


def test_observation_on_a_bound_is_within_it():
    metrics = CountingMetrics()
    for value in (1, 2, 3, 20_000):
        metrics.observe("processor_records_per_chunk", value)
    counts = scraped(metrics)
    name = "processor_records_per_chunk"
    assert counts[f"{name}_bucket", "1.0"] == 1
    assert counts[f"{name}_bucket", "2.0"] == 2
    assert counts[f"{name}_bucket", "10000.0"] == 3
    assert counts[f"{name}_bucket", "+Inf"] == counts[f"{name}_count",] == 4
    assert counts[f"{name}_sum",] == 20_006


def test_what_is_not_known_of_a_partition_is_left_out():
    counts = scraped(CountingMetrics(), PartitionVitals(3, "opening"))
    assert ("processor_consumer_lag_records", "3", "records") not in counts
    assert counts["processor_sessions", "3", "records"] == 0
    assert counts["processor_assigned_partitions",] == 1


def test_scraper_gets_the_format_that_it_asks_for():
    asked = exposition(CountingMetrics())
    text, content_type = asked.text("application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert text.endswith(b"# EOF\n")
    assert asked.text("")[1].startswith("text/plain")
