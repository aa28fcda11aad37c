"""What a run's samples come to."""

import pytest

from benchmarks.contender import ContenderError
from benchmarks.measure import Sample, figures

SAMPLES = [
    Sample(at_s=10.0, cpu_s=0.0, records=0),
    Sample(at_s=11.0, cpu_s=1.0, records=0),
    Sample(at_s=12.0, cpu_s=2.0, records=1_000),
    Sample(at_s=13.0, cpu_s=3.0, records=5_000),
    Sample(at_s=14.0, cpu_s=3.5, records=9_000),
    Sample(at_s=14.5, cpu_s=3.75, records=10_000),
]


def test_rates_count_from_the_first_progress():
    found = figures(SAMPLES, 100.0)
    assert found.started_after_s == 2.0
    assert found.records_per_cpu_s == pytest.approx(9_000 / 1.75)
    assert found.records_per_s == pytest.approx(9_000 / 2.5)


def test_warm_rates_count_the_second_half_alone():
    found = figures(SAMPLES, 100.0)
    assert found.warm_records_per_cpu_s == pytest.approx(5_000 / 0.75)
    assert found.warm_records_per_s == pytest.approx(5_000 / 1.5)


def test_whole_counts_the_start():
    assert figures(SAMPLES, 100.0).whole_records_per_cpu_s == pytest.approx(10_000 / 3.75)


def test_warm_is_all_where_the_first_progress_is_past_the_half():
    found = figures([*SAMPLES[:2], *SAMPLES[4:]], 100.0)
    assert found.warm_records_per_cpu_s == found.records_per_cpu_s


def test_run_that_ended_between_two_looks_has_no_figures():
    with pytest.raises(ContenderError, match="more --records"):
        figures([SAMPLES[0], SAMPLES[-1]], 100.0)
