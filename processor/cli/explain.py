"""``processor explain``: why a chunk is what it is, and a session as a time line."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Final

import click

from processor.cli.explain_view import (
    document_of,
    open_row,
    open_text,
    row_of,
    row_text,
    ruler_text,
)
from processor.cli.options import KAFKA, output_option, session_name, settings_options
from processor.cli.progress import progress_bar
from processor.cli.session_log import SessionLog, session_logs
from processor.proof.explain import Came, came_first, came_in_log, closing, is_closed_by_itself
from processor.proof.seen import Seen
from processor.settings import Settings

_WIDEST: Final = 1_000
Logs = Mapping[int, SessionLog]


@click.command()
@click.argument("session", callback=session_name)
@click.argument("t", type=click.IntRange(min=1), required=False)
@click.option(
    "--excerpt",
    type=click.IntRange(0, _WIDEST),
    default=0,
    metavar="N",
    help="Show the first N characters of each record; without it nothing of their content.",
)
@output_option
@settings_options(*KAFKA, "records_topic", "chunks_topic")
def explain(settings: Settings, session: str, t: int | None, excerpt: int, output: str) -> None:
    """Show chunk T of SESSION record by record, and the rule that closed it, in numbers.

    Without T, the whole session as a time line, a line for each chunk, and what is open behind
    the last. Committed messages alone; a running worker does no harm. The session is looked for
    on every partition, since a key that producers spread over two is two sessions.
    """
    if t is None and excerpt:
        msg = "--excerpt is for one chunk; name its T"
        raise click.UsageError(msg)
    asyncio.run(_explain(settings, session, t, excerpt, output))


async def _explain(
    settings: Settings, session: str, t: int | None, excerpt: int, output: str
) -> None:
    logs = await session_logs(settings, session)
    if t is None:
        async for row in time_line(logs):
            text = open_text if "open_record_count" in row else row_text
            click.echo(json.dumps(row) if output == "json" else text(row))
        return
    for document in await explained(logs, t, excerpt):
        click.echo(json.dumps(document) if output == "json" else ruler_text(document))


async def explained(logs: Logs, t: int, excerpt: int) -> list[dict[str, Any]]:
    """Return chunk ``t`` of a session as a document, one of each partition that has it.

    Args:
        logs: The session's part of each partition; first where its key belongs.
        t: The chunk.
        excerpt: Characters to show of each record.

    Raises:
        ClickException: There is no such chunk.
    """
    near: dict[int, dict[int, Seen]] = {}
    spans: dict[int, tuple[int, int]] = {}
    with progress_bar("reading", len(logs)) as bar:
        for number, log in logs.items():
            async for seen in log.chunks():
                first, last = spans.get(number, (seen.chunk.t, seen.chunk.t))
                spans[number] = (min(first, seen.chunk.t), max(last, seen.chunk.t))
                if abs(seen.chunk.t - t) <= 1:
                    near.setdefault(number, {})[seen.chunk.t] = seen
            bar.update(1)
    documents = []
    for number, beside in near.items():
        if t in beside:
            came = await _came(logs[number], beside, t)
            documents.append(document_of(beside[t], closing(beside[t], came), excerpt))
    if not documents:
        log = next(iter(logs.values()))
        told = [f"{log.chunks_topic}[{it}] has t={a} to t={b}" for it, (a, b) in spans.items()]
        msg = f"session {log.session!r} has no chunk t={t}; "
        msg += "; ".join(told) or f"none at all in {log.chunks_topic}"
        raise click.ClickException(msg)
    _warn_of_partitions(logs, list(spans))
    return documents


async def time_line(logs: Logs) -> AsyncIterator[dict[str, Any]]:
    """Yield a session's chunks as rows, and for each partition what is open behind the last.

    Args:
        logs: The session's part of each partition; first where its key belongs.

    Raises:
        ClickException: There is nothing of the session.
    """
    last: dict[int, Seen] = {}
    for number, log in logs.items():
        async for seen in log.chunks():
            yield row_of(seen, last.get(number))
            # An empty final chunk has no place in the log.
            if seen.chunk.records or number not in last:
                last[number] = seen
    home = next(iter(logs.values()))
    is_found = bool(last)
    for number in last or [home.number]:
        row = await _open(logs[number], last.get(number))
        if row is not None:
            is_found = True
            yield row
    if not is_found:
        place = f"{home.records_topic}[{home.number}], where its key belongs"
        msg = f"session {home.session!r} has no chunk in {home.chunks_topic} and no record in "
        raise click.ClickException(msg + place)
    _warn_of_partitions(logs, list(last))


async def _came(log: SessionLog, beside: Mapping[int, Seen], t: int) -> Came | None:
    """Return the session's next message behind a chunk, from the next chunk or from the log."""
    seen, chunk = beside[t], beside[t].chunk
    if chunk.clock or is_closed_by_itself(seen):
        return None
    if not chunk.final and (came := came_first(beside.get(t + 1))) is not None:
        return came
    ends = [beside[it].last_offset for it in (t - 1, t) if it in beside]
    messages = log.messages_from(max(ends) + 1, chunk.policy.deduplicate_records)
    async with aclosing(messages):
        async for logged in messages:
            if logged.value is None or not chunk.final:
                return came_in_log(logged, seen)
    return None


async def _open(log: SessionLog, last: Seen | None) -> dict[str, Any] | None:
    count, first = 0, None
    start = 0 if last is None else last.last_offset + 1
    window = 0 if last is None else last.chunk.policy.deduplicate_records
    async for logged in log.messages_from(start, window):
        if logged.value is not None:
            first = first or logged
            count += 1
    if first is None:
        return None
    return open_row(log.session, log.records_topic, log.number, first, count)


def _warn_of_partitions(logs: Logs, found: list[int]) -> None:
    home = next(iter(logs.values()))
    names = ", ".join(f"{home.chunks_topic}[{it}]" for it in sorted(found))
    if len(found) > 1:
        message = f"session {home.session!r} is {len(found)} sessions, one on each of {names}: "
        message += "its producers have different partitioners"
    elif found and found != [home.number]:
        message = f"session {home.session!r} is on {names}, not on [{home.number}], where Java's "
        message += "partitioner and this project's put it: its producer has another one"
    else:
        return
    click.echo(f"warning: {message}", err=True)
