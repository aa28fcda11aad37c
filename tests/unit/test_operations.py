"""docs/operations.md, and the page of metrics, say what the code does."""

import re

from processor.metrics import METRICS
from processor.settings import Settings
from tests.documents import ROOT, assert_table
from tests.queries import alerts

TEXT = (ROOT / "docs" / "operations.md").read_text()


def test_table_of_metrics_is_the_tables_in_the_code():
    rows = [
        f"| `{name}` | {it.kind} | {', '.join(it.tags) or '–'} | {it.help} |"  # noqa: RUF001
        for name, it in METRICS.items()
    ]
    assert_table("docs/reference/metrics.md", "metrics", rows)


def test_every_alert_has_its_line():
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    told = re.findall(r"^\| (Processor[\w, ]+) \|", text, re.MULTILINE)
    assert set(", ".join(told).split(", ")) == {rule["alert"] for rule in alerts()}


def test_address_is_the_default():
    settings = Settings()
    assert f"`{settings.http_host}:{settings.http_port}`" in TEXT
