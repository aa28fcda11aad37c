"""An instant that a person names: a date and time, or so long before now."""

import re
from datetime import UTC, datetime
from typing import Final

import click

from processor.clock import SystemClock

_UNITS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_AGO: Final = re.compile(r"(\d+)([smhd])", re.ASCII)


def since_ms(text: str, now_ms: int) -> int:
    """Return the instant that a text names, in Unix milliseconds.

    Args:
        text: ISO 8601, in UTC where it names no zone; or a number and s, m, h or d.
        now_ms: The time now.

    Raises:
        ValueError: It is neither.
    """
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now_ms - int(ago[1]) * _UNITS[ago[2]]
    at = datetime.fromisoformat(text)
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000)


class _Since(click.ParamType):
    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return since_ms(value, SystemClock().now_ms())
        except ValueError:
            self.fail(f"{value!r} is no time such as 2026-01-31T08:00Z or 12h", param, ctx)


#: Type of a click option that takes an instant.
SINCE: Final = _Since()
