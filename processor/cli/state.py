"""``processor state``: what an app knows of each partition, and how to make it forget that."""

import asyncio
import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Any

import click
from aiokafka import TopicPartition

from processor.app import chunker_config
from processor.cli.options import KAFKA, TOPICS, output_option, session_name, settings_options
from processor.cli.partition_view import PartitionView, open_counts
from processor.cli.rebuild import rebuild
from processor.cli.shown import printable
from processor.cli.stopped import (
    NoMember,
    chosen_partitions,
    commit_state,
    partition_count,
    partition_options,
    refuse_members,
)
from processor.core.errors import ProcessorError
from processor.kafka.broker import KafkaPartitionBroker
from processor.kafka.connection import client_settings
from processor.kafka.flow import chunking
from processor.kafka.reading import partition_reader, read_to_end
from processor.protocol.changelog import (
    PARTITION_KEY,
    PartitionEntry,
    decode_partition,
    decode_sessions,
    encode_partition,
)
from processor.protocol.loading import all_entries
from processor.protocol.record_ids import RecordIds
from processor.protocol.start_checks import first_entry, world_agrees
from processor.settings import POLICY, Settings


@click.group()
def state() -> None:
    """Show what an app knows of its partitions and sessions, make it anew, or start it over."""


state.add_command(rebuild)


@state.command()
@click.option(
    "--session",
    metavar="NAME",
    callback=session_name,
    help="Show one session instead of the partitions.",
)
@output_option
@settings_options(*KAFKA, *TOPICS, *POLICY)
def show(settings: Settings, session: str | None, output: str) -> None:
    """Print where each partition stands and whether a worker could go on from there."""
    seen = asyncio.run(_look_at_all(settings))
    rows = [it.as_json() for it in seen] if session is None else _rows_of(seen, session)
    if not rows:
        msg = f"no state and no open record of session {session!r}"
        raise click.ClickException(msg)
    for row in rows:
        click.echo(json.dumps(row, ensure_ascii=False) if output == "json" else _described(row))


@state.command()
@partition_options
@click.option(
    "--to",
    type=click.Choice(["earliest", "latest"]),
    default="earliest",
    show_default=True,
    help="Where to start: at the log's first record, or at its end, leaving all of it out.",
)
@click.option("--yes", is_flag=True, help="Don't ask.")
@settings_options(*KAFKA, *TOPICS, *POLICY)
def reset(
    settings: Settings, partitions: tuple[int, ...], to: str, *, is_all: bool, yes: bool
) -> None:
    """Forget all sessions of partitions, so that the next start is a first start.

    Every session then starts again at t=1. Chunks that are out stay: with --to earliest, all
    of their records are chunked once more. Stop all workers first.
    """
    chosen = chosen_partitions(settings, partitions, is_all=is_all)
    if not yes:
        names = ", ".join(f"{settings.records_topic}[{number}]" for number in chosen)
        question = (
            f"Forget every session of app {settings.app_id} in {names}, t to start again at 1?"
        )
        click.confirm(question, abort=True, err=True)
    asyncio.run(_reset(settings, chosen, to))


async def _look_at_all(settings: Settings) -> list[PartitionView]:
    return [await _look(settings, it) for it in range(await partition_count(settings))]


async def _look(settings: Settings, number: int) -> PartitionView:
    broker = KafkaPartitionBroker(settings, chunking(settings), number, NoMember())
    entries = await all_entries(broker)
    where = f"{settings.changelog_topic}[{number}]"
    entry = decode_partition(entries, where)
    states = {it.session: it for it in decode_sessions(entries, where)}
    survey = await broker.survey([entry.fingerprint[0]] if entry and entry.fingerprint else [])
    problem = None
    try:
        world_agrees(entry, survey, chunker_config(settings), where)
    except ProcessorError as error:
        problem = str(error)
    replay = await _replay(settings, number, entry, survey.log_start) if entry else []
    return PartitionView(
        settings.records_topic,
        number,
        entry,
        states,
        survey,
        open_counts(states, replay),
        problem,
    )


async def _replay(
    settings: Settings, number: int, entry: PartitionEntry, log_start: int
) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return what a replay would take: offset, key and whether there is a value."""
    found: list[tuple[int, bytes | None, bytes | None]] = []
    if entry.low >= entry.seen:
        return found
    size = entry.rule.get("deduplicate_records", 0)
    ids = RecordIds(size)
    place = TopicPartition(settings.records_topic, number)
    async with partition_reader(client_settings(settings), place) as reader:
        reader.seek(place, max(entry.low - size, log_start))
        async for records in read_to_end(reader, place):
            found += [
                (it.offset, it.key, None if it.value is None else b"")
                for it in records
                if not ids.is_repeated(it) and entry.low <= it.offset < entry.seen
            ]
            if records[-1].offset >= entry.seen - 1:
                break
    return found


def _rows_of(seen: Iterable[PartitionView], session: str) -> list[dict[str, Any]]:
    return [row for it in seen if (row := it.session_as_json(session)) is not None]


def _described(row: Mapping[str, Any]) -> str:
    lines = [f"{row['topic']}[{row['partition']}]"]
    for name, value in row.items():
        if isinstance(value, dict):
            shown = ", ".join(f"{key}={each}" for key, each in value.items())
        else:
            shown = "-" if value is None else printable(str(value))
        if name not in {"topic", "partition"}:
            lines.append(f"  {name.replace('_', ' ')}: {shown}")
    return "\n".join(lines)


async def _reset(settings: Settings, partitions: Iterable[int], to: str) -> None:
    await refuse_members(settings, "reset")
    for number in partitions:
        session_count, start = await _start_over(settings, number, to)
        click.echo(
            f"{settings.records_topic}[{number}]: {session_count:,} sessions forgotten; the next "
            f"start reads from offset {start}, every session from t=1"
        )
    click.echo(
        f"chunks that are in {settings.chunks_topic} stay, so readers see t=1 again and `processor "
        "verify` calls it a fault; choose another PROCESSOR_CHUNKS_TOPIC to keep them apart"
    )


async def _start_over(settings: Settings, number: int, to: str) -> tuple[int, int]:
    """Make a partition as it was before its first start, in one transaction.

    The partition's own producer does it: a worker that has started meanwhile is fenced, or
    fences us, and either finds all of the old state or all of the new.

    Returns:
        How many sessions were forgotten, and where the next start reads from.
    """
    config = dataclasses.replace(chunker_config(settings), start_at_end=to == "latest")
    broker = KafkaPartitionBroker(settings, chunking(settings), number, NoMember())
    try:
        await broker.fence()
        keys = await all_entries(broker)
        entry = first_entry(await broker.survey([]), config)
        gone: dict[bytes, bytes | None] = dict.fromkeys(keys)
        # Not deleted but written anew: the group's offset can't be deleted, and an offset
        # without an entry is what a lost changelog looks like.
        entries = gone | {PARTITION_KEY: encode_partition(entry)}
        await commit_state(broker, entries, entry.seen, f"{settings.records_topic}[{number}]")
    finally:
        await broker.discard()
    return len(gone.keys() - {PARTITION_KEY}), entry.seen
