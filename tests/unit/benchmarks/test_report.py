"""The report shows each figure, and leaves empty what is unknown."""

import dataclasses

from benchmarks.contenders import BASELINE, OURS
from benchmarks.figures import Found, Row
from benchmarks.latency import Latency
from benchmarks.measure import Figures
from benchmarks.report import latency_section, medians_table, report, table

FIGURES = Figures(
    records=500_000,
    records_per_cpu_s=100e3,
    warm_records_per_cpu_s=110e3,
    records_per_s=60e3,
    warm_records_per_s=61e3,
    whole_records_per_cpu_s=90e3,
    started_after_s=1.25,
    peak_rss_mb=94.4,
    broker_cpu_s=2.5,
    changelog_ratio=0.0123,
)
HALF = dataclasses.replace(FIGURES, records_per_cpu_s=50e3, broker_cpu_s=None, changelog_ratio=None)
ROWS = [Row(1, BASELINE, FIGURES), Row(1, "worker", HALF)]


def test_every_run_has_a_line_with_its_ratio():
    _, _, first, second = table(ROWS, BASELINE).splitlines()
    assert first == (
        "| 1 | passthrough | 100.0 |  | 110.0 | 60.0 | 90.0 | 1.2 | 94 | 5.0 | 1.23% |"
    )
    assert second == "| 1 | worker | 50.0 | 0.50 | 110.0 | 60.0 | 90.0 | 1.2 | 94 |  |  |"


def test_every_contender_has_one_line_of_medians():
    lines = medians_table(Found([*ROWS, *ROWS]), BASELINE).splitlines()
    assert len(lines) == 4
    assert lines[-1] == "| worker | 50.0 | 0.50 | 110.0 | 60.0 | 90.0 | 1.2 | 94 |  |  | 2 |"


def test_latency_has_a_line_for_each_load():
    shown = latency_section([Latency("worker", 0.5, 20_000.4, 1_234, 81.2, 150.6, 201.0, 0.0123)])
    assert "| worker | 50% | 20,000 | 1,234 | 81 | 151 | 201 | 1.23% |" in shown


def test_no_latency_is_no_section():
    assert latency_section([]) == ""


def test_report_says_what_was_measured_and_what_was_left_out():
    text = report(
        Found(ROWS),
        BASELINE,
        records=300_000,
        contenders={"worker": OURS["worker"]},
        versions={"quixstreams": "3.28.1"},
        left_out=["bytewax: make bench-peers installs bytewax"],
        sections=["\n## More\n"],
    )
    assert "| worker | exactly once, 0.1 s; `chars_over_four`, `none` | 600,000 |" in text
    assert "quixstreams 3.28.1" in text
    assert "Left out: bytewax: make bench-peers installs bytewax." in text
    assert "\n## More\n" in text
