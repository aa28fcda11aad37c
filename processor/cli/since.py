"""An instant that a person names: a date and time, or so long before now."""

import re
from datetime import UTC, datetime
from typing import Final

import click

from processor.clock import SystemClock

_UNITS_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO: Final = re.compile(r"(\d+)([smhd])", re.ASCII)


def since_ms(text: str, now_ms: int) -> int:
    """Return the instant that a text names, in Unix milliseconds; 0 for any before 1970.

    Args:
        text: ISO 8601, in UTC where it names no zone; or a number and s, m, h or d.
        now_ms: The time now.

    Raises:
        ValueError: It is neither.
    """
    if ago := _AGO.fullmatch(text):
        since = now_ms - int(ago[1]) * _UNITS_MS[ago[2]]
    else:
        at = datetime.fromisoformat(text)
        since = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000)
    return max(0, since)  # Kafka knows no time before it


class _Since(click.ParamType):
    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return since_ms(value, SystemClock().now_ms())
        except ValueError:
            self.fail(f"{value!r} is no time such as 2026-01-31T08:00Z or 12h", param, ctx)


#: Type of a click option that takes an instant.
SINCE: Final = _Since()
