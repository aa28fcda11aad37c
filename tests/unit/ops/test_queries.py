"""Dashboard and alert rules against what a worker offers; the live one is asked in tests/e2e."""

import json

import pytest

from processor.metrics import METRICS
from processor.ops.counting import CountingMetrics
from tests.queries import DEPLOY, alerts, asked, queries, unanswered
from tests.unit.ops.seeing import ALL_KNOWN, exposition

QUERIES = list(queries())


def metrics():
    return exposition(CountingMetrics(), ALL_KNOWN).text("")[0].decode()


def test_every_query_finds_its_series_and_labels():
    assert unanswered(metrics()) == []


def test_series_and_labels_that_are_not_there_are_found_out(monkeypatch):
    bad = 'sum by (flush) (rate(processor_records_total{reason="x"}[1m])) / processor_nothing'
    monkeypatch.setattr("tests.queries.queries", lambda: [("here", bad)])
    assert unanswered(metrics()) == [
        ("here", "processor_records_total", ["flush", "reason"]),
        ("here", "processor_nothing", []),
    ]


@pytest.mark.parametrize(("where", "query"), QUERIES, ids=[where for where, _ in QUERIES])
def test_counters_are_asked_for_what_they_gained(where, query):
    """A counter by itself tells how long a worker has been running."""
    for name in asked(query):
        if name in METRICS and METRICS[name].kind == "counter":
            assert any(f"{it}({name}" in query for it in ("rate", "increase", "changes")), where


def test_dashboard_shows_every_metric():
    text = (DEPLOY / "grafana" / "dashboard.json").read_text()
    assert [name for name in METRICS if name not in text] == []


def test_panels_lie_side_by_side():
    panels = json.loads((DEPLOY / "grafana" / "dashboard.json").read_text())["panels"]
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not cells & taken
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_alert_says_how_bad_it_is_what_it_is_and_what_to_do(rule):
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"].endswith(".")
