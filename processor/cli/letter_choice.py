"""Options that choose dead letters."""

import functools
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

import click

from processor.clock import SystemClock
from processor.protocol.letters import Choice

P = ParamSpec("P")
R = TypeVar("R")

_DURATION: Final = re.compile(r"(\d+)([smhd])")
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def choice_options(verb: Callable[Concatenate[Choice, P], R]) -> Callable[P, R]:
    """Give a verb ``--since``, ``--reason`` and ``--max``, its first argument."""

    @functools.wraps(verb)
    def with_choice(*args: P.args, **kwargs: P.kwargs) -> R:
        since: Any = kwargs.pop("since")
        reason: Any = kwargs.pop("reason")
        most: Any = kwargs.pop("most")
        choice = Choice(since_ms(since, SystemClock().now_ms()), reason, most)
        return verb(choice, *args, **kwargs)

    command: Callable[P, R] = click.option(
        "--max", "most", type=click.IntRange(min=1), metavar="N", help="So many letters at most."
    )(with_choice)
    command = click.option(
        "--reason", metavar="TEXT", help="Only letters with this reason, such as no-key."
    )(command)
    return click.option(
        "--since",
        default="",
        metavar="TIME",
        help="Only letters whose record is of this time or later: 90s, 30m, 2h or 7d ago, or a "
        "date with or without a time, in UTC unless it says otherwise.",
    )(command)


def since_ms(text: str, now_ms: int) -> int:
    """Return the Unix milliseconds that ``text`` means; 0 when it is empty.

    Raises:
        BadParameter: It is neither a duration nor a time.
    """
    if not text:
        return 0
    if found := _DURATION.fullmatch(text):
        return now_ms - int(found[1]) * _UNIT_S[found[2]] * 1_000
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        msg = f"{text!r} is neither a duration such as 2h nor a time such as 2026-05-04T12:00"
        raise click.BadParameter(msg) from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000)
