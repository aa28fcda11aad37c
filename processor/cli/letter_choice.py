"""Options that choose dead letters."""

import functools
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from processor.cli.since import SINCE
from processor.protocol.letters import Choice

P = ParamSpec("P")
R = TypeVar("R")


def choice_options(verb: Callable[Concatenate[Choice, P], R]) -> Callable[P, R]:
    """Give a verb ``--since``, ``--reason`` and ``--max``, its first argument."""

    @functools.wraps(verb)
    def with_choice(*args: P.args, **kwargs: P.kwargs) -> R:
        since_ms: Any = kwargs.pop("since_ms")
        reason: Any = kwargs.pop("reason")
        most: Any = kwargs.pop("most")
        return verb(Choice(since_ms or 0, reason, most), *args, **kwargs)

    command: Callable[P, R] = click.option(
        "--max", "most", type=click.IntRange(min=1), metavar="N", help="So many letters at most."
    )(with_choice)
    command = click.option(
        "--reason", metavar="TEXT", help="Only letters with this reason, such as no-key."
    )(command)
    return click.option(
        "--since",
        "since_ms",
        type=SINCE,
        help="Only letters whose record is of this time or later: 90s, 30m, 2h or 7d ago, or a "
        "date with or without a time, in UTC unless it says otherwise.",
    )(command)
