"""``processor tail``: chunks as they land."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import click
from aiokafka import AIOKafkaConsumer

from processor.cli.options import KAFKA, output_option, session_name, settings_options
from processor.cli.shown import printable
from processor.client.chunk import Delivered, decode_message
from processor.client.delivery import following
from processor.settings import Settings
from processor.wire_models import WireChunk

_log: Final = logging.getLogger(__name__)


@click.command()
@click.option("--from-start", is_flag=True, help="Begin with the oldest chunk, not the next one.")
@click.option(
    "--session", metavar="NAME", callback=session_name, help="Only the chunks of one session."
)
@click.option("--max-chunks", type=click.IntRange(min=1), metavar="N", help="Stop after N chunks.")
@output_option
@settings_options(*KAFKA, "chunks_topic")
def tail(
    settings: Settings,
    session: str | None,
    max_chunks: int | None,
    output: str,
    *,
    from_start: bool,
) -> None:
    """Print each chunk as it lands, one line each, until Ctrl-C.

    Committed chunks alone; with --output json each is the whole chunk, byte for byte.
    """
    asyncio.run(_tail(settings, session, max_chunks, output, from_start=from_start))


async def _tail(
    settings: Settings,
    session: str | None,
    max_chunks: int | None,
    output: str,
    *,
    from_start: bool,
) -> None:
    stand = AIOKafkaConsumer.seek_to_beginning if from_start else AIOKafkaConsumer.seek_to_end
    async with following(settings, stand) as (messages, _), aclosing(messages):
        _log.info("waiting for chunks", extra={"topic": settings.chunks_topic})
        async for line in lines(messages, session, max_chunks, output):
            click.echo(line)


async def lines(
    messages: AsyncIterator[Delivered], session: str | None, max_chunks: int | None, output: str
) -> AsyncIterator[str | bytes]:
    """Yield the line to print for each chunk.

    Args:
        messages: Messages of the chunks topic.
        session: Leave out the chunks of all others.
        max_chunks: End after so many.
        output: ``text`` or ``json``.

    Raises:
        StateError: A message isn't a chunk.
    """
    printed = 0
    async for message in messages:
        if session is not None and message.key != session.encode():
            continue
        chunk = decode_message(message)
        yield message.value or b"" if output == "json" else describe(chunk)
        printed += 1
        if printed == max_chunks:
            return


def describe(chunk: WireChunk) -> str:
    """Return a chunk as one line to read, without its content."""
    session = printable(chunk.session)
    source = f"{chunk.source.topic}[{chunk.source.partition}]"
    if chunk.source.first_offset is not None:
        source += f"@{chunk.source.first_offset}-{chunk.source.last_offset}"
    marks = [
        mark
        for mark, holds in (
            ("clock", chunk.clock),
            ("final", chunk.final),
            ("over budget", chunk.over_budget),
            ("record omitted", any(record.omitted for record in chunk.records)),
        )
        if holds
    ]
    flush = ", ".join((chunk.flush, *marks))
    return (
        f"{session}  t={chunk.t}  {len(chunk.records):,} records  {chunk.token_count:,} tokens"
        f"  {flush}  {source}"
    )
