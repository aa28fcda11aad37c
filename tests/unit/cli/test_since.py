import click
import pytest
from click.testing import CliRunner

from processor.cli.since import SINCE, since_ms

HOUR_MS = 3_600_000
NOW_MS = 1_764_500_000_000  # 2025-11-30T10:53:20Z


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", NOW_MS - 90_000),
        ("30m", NOW_MS - HOUR_MS // 2),
        ("2h", NOW_MS - 2 * HOUR_MS),
        ("7d", NOW_MS - 7 * 24 * HOUR_MS),
        ("2025-11-30T10:53:20Z", NOW_MS),
        ("2025-11-30T10:53:20", NOW_MS),
        ("2025-11-30T11:53:20+01:00", NOW_MS),
        ("2025-11-30", 1_764_460_800_000),
    ],
)
def test_instant_is_a_date_or_so_long_ago(text, expected):
    assert since_ms(text, NOW_MS) == expected


@pytest.mark.parametrize("text", ["1969-12-31", "0001-01-01", f"{10**9}d"])
def test_instant_before_1970_is_the_first_that_kafka_knows(text):
    """Symptom: `unexpected ValueError: The target time for partition ... cannot be negative`."""
    assert since_ms(text, NOW_MS) == 0


@pytest.mark.parametrize(
    "text", ["", "2", "h", "2w", "-2h", "\u0663h", "9" * 5_000 + "d", "yesterday"]
)
def test_anything_else_is_refused(text):
    done = CliRunner().invoke(
        click.Command("verb", params=[click.Option(["--since"], type=SINCE)]), ["--since", text]
    )
    assert done.exit_code == 2
    assert "is no time such as" in done.output
