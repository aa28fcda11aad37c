"""``processor state rebuild``: a lost changelog once more, out of what is in the other topics."""

import asyncio
import json
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

import click
from aiokafka import TopicPartition

from processor.app import chunker_config
from processor.cli.options import KAFKA, TOPICS, output_option, settings_options
from processor.cli.progress import counted, progress_bar
from processor.cli.stopped import (
    NoMember,
    chosen_partitions,
    commit_state,
    partition_options,
    refuse_members,
)
from processor.clock import SystemClock
from processor.core.errors import ChangelogError, StateError
from processor.kafka.broker import KafkaPartitionBroker
from processor.kafka.connection import client_settings
from processor.kafka.flow import chunking
from processor.kafka.reading import partition_reader, read_to_end
from processor.kafka.rights import right_errors
from processor.protocol.changelog import decode_partition, decode_sessions
from processor.protocol.loading import all_entries
from processor.protocol.port import Survey
from processor.protocol.rebuild import Rebuild, Rebuilt, check_nothing_deleted
from processor.protocol.start_checks import SESSION_REMEDIES, check_changelog_whole
from processor.settings import POLICY, Settings


class _Consent(NamedTuple):
    """What a person has agreed to."""

    is_dry_run: bool
    is_forced: bool
    is_deleted_accepted: bool


@click.command()
@partition_options
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Show what would be written.")
@click.option("--force", "is_forced", is_flag=True, help="Overwrite a state that is readable.")
@click.option(
    "--accept-deleted",
    "is_deleted_accepted",
    is_flag=True,
    help="Go on although retention has deleted records or chunks: none of them was open, and "
    "every session that is to go on has a chunk left.",
)
@output_option
@settings_options(*KAFKA, *TOPICS, *POLICY)
def rebuild(
    settings: Settings,
    /,
    partitions: tuple[int, ...],
    output: str,
    *,
    is_all: bool,
    **consent: bool,
) -> None:
    """Make a lost changelog anew from chunks, dead letters and records; stop all workers first.

    Where each session stands is read from its last chunk, and what was open from the records
    behind it. The next start replays those and goes on exactly as it would have. Nothing is
    guessed: what the topics don't tell any more is refused, saying what is missing.
    """
    chosen = chosen_partitions(settings, partitions, is_all=is_all)
    asyncio.run(_rebuild(settings, chosen, _Consent(**consent), output))


async def _rebuild(
    settings: Settings, partitions: Iterable[int], consent: _Consent, output: str
) -> None:
    await refuse_members(settings, "rebuild")
    for number in partitions:
        row = await _rebuild_one(settings, number, consent)
        click.echo(json.dumps(row) if output == "json" else _described(row))


async def _rebuild_one(settings: Settings, number: int, consent: _Consent) -> dict[str, Any]:
    """Rebuild a partition in one transaction of its own producer."""
    broker = KafkaPartitionBroker(settings, chunking(settings), number, NoMember())
    where = f"{settings.records_topic}[{number}]"
    try:
        if not consent.is_dry_run:
            # First, so that the last owner's transaction is out or gone when the topics are read.
            await broker.fence()
        there = await all_entries(broker)
        if not consent.is_forced:
            _refuse_readable(there, where)
        survey = await broker.survey([])
        # Written into this topic, it would still be one whose beginning is missing.
        check_changelog_whole(survey, SESSION_REMEDIES, where)
        with right_errors(settings, "Read"), progress_bar(f"reading {where}", 0) as bar:
            made = await _read(settings, number, survey, consent, bar)
        if not consent.is_dry_run:
            gone: dict[bytes, bytes | None] = dict.fromkeys(there)
            await commit_state(broker, gone | made.entries, made.entry.seen, where)
    finally:
        await broker.discard()
    entry = made.entry
    return {
        "topic": settings.records_topic,
        "partition": number,
        "sessions": len(made.states),
        "low": entry.low,
        "seen": entry.seen,
        "committed": survey.committed,
        "open_records": made.open_record_count,
        "records": entry.counts.records,
        "chunked": entry.counts.chunked,
        "dead_letters": entry.counts.dead_letters,
        "ends": entry.counts.ends,
        "duplicates": entry.counts.duplicates,
        "rule": entry.rule,
        "written": not consent.is_dry_run,
    }


def _refuse_readable(entries: Mapping[bytes, bytes], where: str) -> None:
    """Return if the changelog holds no state that a worker could go on from.

    Raises:
        StateError: It does.
    """
    try:
        is_there = decode_partition(entries, where) is not None
        sessions = sum(1 for _ in decode_sessions(entries, where))
    except ChangelogError:
        return
    if is_there:
        message = (
            f"{where}: the changelog holds its state, of {sessions:,} sessions, and all of it is "
            "readable: see `processor state show`. Rebuild other partitions with --partition N, or "
            "overwrite this one with --force"
        )
        raise StateError(message)


async def _read(
    settings: Settings,
    number: int,
    survey: Survey,
    consent: _Consent,
    bar: Any,  # noqa: ANN401
) -> Rebuilt:
    """Read the three topics from start to end and return the state that they tell of."""
    names = (settings.chunks_topic, settings.dead_letter_topic, settings.records_topic)
    places = [TopicPartition(name, number) for name in names]
    client, clock = client_settings(settings), SystemClock()
    async with AsyncExitStack() as stack:
        readers = [await stack.enter_async_context(partition_reader(client, it)) for it in places]
        starts = []
        for reader, place in zip(readers, places, strict=True):
            starts.append((await reader.beginning_offsets([place]))[place])
            bar.length += (await reader.end_offsets([place]))[place] - starts[-1]
        if not consent.is_deleted_accepted:
            check_nothing_deleted(survey, starts[0], f"{settings.records_topic}[{number}]")
        rebuild = Rebuild(chunker_config(settings), number, survey, starts[0])
        chunks, letters, records = (
            counted(read_to_end(reader, place), bar.update)
            for reader, place in zip(readers, places, strict=True)
        )
        async for messages in chunks:
            for message in messages:
                rebuild.take_chunk(message.value or b"", message.offset)
        async for messages in letters:
            for message in messages:
                rebuild.take_letter(message)
        async for messages in records:
            if not rebuild.take_records(messages, clock.now_ms()):
                break
        return rebuild.finish()


def _described(row: Mapping[str, Any]) -> str:
    offset = row["committed"]
    group = "the group has no offset" if offset is None else f"the group's offset is {offset}"
    return (
        f"{row['topic']}[{row['partition']}]: {row['sessions']:,} sessions of {row['chunked']:,} "
        f"records in chunks; processed up to offset {row['seen']} ({group}), a replay of "
        f"{row['open_records']:,} open records starts at {row['low']}; "
        f"{'written' if row['written'] else 'nothing is written'}"
    )
