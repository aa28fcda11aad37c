"""How far a verb has come, for whoever waits at a terminal."""

import sys
from collections.abc import AsyncIterator, Callable, Sized
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import click

Advance = Callable[[int], None]
Messages = TypeVar("Messages", bound=Sized)


def progress_bar(label: str, length: int) -> AbstractContextManager[Any]:
    """Return click's bar of ``length`` messages, on stderr and on a terminal alone."""
    return click.progressbar(
        length=length,
        label=label,
        file=click.get_text_stream("stderr"),
        hidden=not sys.stderr.isatty(),
    )


async def counted(batches: AsyncIterator[Messages], advance: Advance) -> AsyncIterator[Messages]:
    """Yield ``batches``, telling the length of each before it."""
    async for messages in batches:
        advance(len(messages))
        yield messages
