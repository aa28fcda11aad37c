"""What a run's samples come to."""

import pytest

from benchmarks.contender import ContenderError, Host, Run, Source
from benchmarks.judging import Expected
from benchmarks.measure import Sample, changelog_ratio, figures

SAMPLES = [
    Sample(at_s=10.0, cpu_s=0.0, records=0),
    Sample(at_s=11.0, cpu_s=1.0, records=0),
    Sample(at_s=12.0, cpu_s=2.0, records=1_000),
    Sample(at_s=13.0, cpu_s=3.0, records=5_000),
    Sample(at_s=14.0, cpu_s=3.5, records=9_000),
    Sample(at_s=14.5, cpu_s=3.75, records=10_000),
]


def test_rates_leave_out_what_is_before_the_first_step_and_after_the_last_but_one():
    found = figures(SAMPLES, 100.0)
    assert found.started_after_s == 2.0
    assert found.records_per_cpu_s == pytest.approx(8_000 / 1.5)
    assert found.records_per_s == pytest.approx(8_000 / 2.0)


def test_warm_rates_count_the_second_half_alone():
    found = figures(SAMPLES, 100.0)
    assert found.warm_records_per_cpu_s == pytest.approx(4_000 / 0.5)
    assert found.warm_records_per_s == pytest.approx(4_000 / 1.0)


def test_whole_counts_start_and_end():
    assert figures(SAMPLES, 100.0).whole_records_per_cpu_s == pytest.approx(10_000 / 3.75)


def test_looks_between_two_steps_change_nothing():
    idle = [
        Sample(at_s=13.5, cpu_s=3.25, records=5_000),
        Sample(at_s=13.9, cpu_s=3.4, records=5_000),
    ]
    assert figures([*SAMPLES[:4], *idle, *SAMPLES[4:]], 100.0) == figures(SAMPLES, 100.0)


def test_run_of_too_few_steps_has_no_figures():
    with pytest.raises(ContenderError, match="in 2 steps of progress; give it more --records"):
        figures([*SAMPLES[:3], SAMPLES[-1]], 100.0)


def test_changelog_is_what_a_run_wrote_beside_its_input_and_output(tmp_path):
    for topic in ("one-records", "one-chunks", "one-dead-letter", "one-changelog", "other-01"):
        (tmp_path / "data" / f"{topic}-0").mkdir(parents=True)
        (tmp_path / "data" / f"{topic}-0" / "0.log").write_bytes(bytes(50))
    source = Source("one-records", 10, 1_000, Expected({}, {}, {}))
    assert changelog_ratio(Run(Host("", None, 1, tmp_path), source, "one", tmp_path)) == 0.05
    assert changelog_ratio(Run(Host("", None), source, "one", tmp_path)) is None
