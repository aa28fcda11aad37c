"""Figures are kept as they were, and a ratio that fell clearly is named."""

import pytest

from benchmarks.figures import Found, Row, fallen, ratios, read_found, speedup
from benchmarks.latency import Latency
from benchmarks.measure import Figures


def row(run, name, k_per_cpu_s, broker_cpu_s=1.5):
    rate = k_per_cpu_s * 1e3
    return Row(run, name, Figures(1_000, rate, rate, rate, rate, rate, 1.0, 90.0, broker_cpu_s))


ROWS = [
    row(1, "passthrough", 100),
    row(1, "worker", 50),
    row(2, "passthrough", 50),
    row(2, "worker", 40),
    row(3, "worker", 1),
]


def test_ratio_is_the_median_of_the_runs_that_both_had():
    assert ratios(ROWS, "passthrough") == {"worker": pytest.approx((0.5 + 0.8) / 2)}


def test_no_baseline_gives_no_ratio():
    assert ratios(ROWS[1:2], "passthrough") == {}


def test_medians_are_of_each_figure_and_say_how_many_runs_there_were():
    first, second = Found(ROWS).medians()
    assert (first.run, first.name, first.figures.records_per_cpu_s) == (2, "passthrough", 75e3)
    assert (second.run, second.name, second.figures.records_per_cpu_s) == (3, "worker", 40e3)


def test_what_one_run_does_not_know_has_no_median():
    [only] = Found([row(1, "worker", 1, None), row(2, "worker", 1)]).medians()
    assert only.figures.broker_cpu_s is None


def test_figures_come_back_from_their_file(tmp_path):
    found = Found(ROWS, [Latency("worker", 0.5, 1_000.0, 12, 80.0, 150.0, 160.0, 0.01)])
    found.write(tmp_path / "figures.json")
    assert read_found(tmp_path / "figures.json") == found


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ({"worker": 0.52}, []),
        ({"worker": 0.50}, ["worker: 0.50 of the pass-through, 0.60 when last committed"]),
        ({"worker": 0.9, "new": 0.1}, []),
        ({}, []),
    ],
    ids=["within the noise", "fell", "risen, and new", "not measured"],
)
def test_ratio_clearly_below_the_committed_one_is_named(now, said):
    assert fallen(now, {"worker": 0.60}) == said


def test_two_workers_do_twice_what_one_does_where_each_is_as_good():
    assert speedup({"worker": 0.5, "worker-twice": 0.45}) == pytest.approx(1.8)
    assert speedup({"worker": 0.5}) is None
