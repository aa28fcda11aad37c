"""Reading the dead-letter topic, and which of its letters were sent again."""

import re
from collections.abc import AsyncGenerator, Mapping
from typing import Final

from aiokafka import TopicPartition

from processor.core.errors import StateError
from processor.kafka.connection import client_settings
from processor.kafka.ledger import ledger_entries
from processor.kafka.reading import partition_reader, read_to_end, timestamp_of
from processor.kafka.topics import describe_topic
from processor.protocol.letters import Letter
from processor.protocol.redriven import Redriven, decode_redriven
from processor.settings import Settings

_NUMBER: Final = re.compile(rb"0|[1-9][0-9]{0,9}")


def ledger_name(settings: Settings) -> str:
    """Return under which name the ledger keeps what was sent again."""
    return f"redrive-{settings.dead_letter_topic}"


async def read_letters(settings: Settings) -> AsyncGenerator[list[Letter], None]:
    """Yield the dead letters, one partition after the other, each from its start to its end now.

    Raises:
        ConfigError: There is no such topic.
        StateError: A transaction hangs in it.
        UnreachableError: No broker answers.
    """
    topic, client = settings.dead_letter_topic, client_settings(settings)
    for number in range((await describe_topic(settings, topic)).partition_count):
        place = TopicPartition(topic, number)
        async with partition_reader(client, place) as reader:
            async for records in read_to_end(reader, place):
                yield [Letter(topic, number, it) for it in records]


async def read_letter(settings: Settings, partition: int, offset: int) -> Letter | None:
    """Return the dead letter at an offset, ``None`` if there is none.

    Raises:
        ConfigError: There is no such topic.
        StateError: A transaction hangs in it.
        UnreachableError: No broker answers.
    """
    topic = settings.dead_letter_topic
    if partition >= (await describe_topic(settings, topic)).partition_count:
        return None
    place = TopicPartition(topic, partition)
    async with partition_reader(client_settings(settings), place) as reader:
        reader.seek(place, offset)
        async for records in read_to_end(reader, place):
            first = records[0]
            return Letter(topic, partition, first) if first.offset == offset else None
    return None


async def read_redriven(settings: Settings) -> dict[int, Redriven]:
    """Return which letters were sent again, by partition, and change nothing.

    Raises:
        StateError: The entries can't be read, or are of another dead-letter topic of this name.
        UnreachableError: No broker answers.
    """
    entries = await ledger_entries(settings, ledger_name(settings))
    return await checked_redriven(settings, entries)


async def checked_redriven(
    settings: Settings, entries: Mapping[bytes, bytes]
) -> dict[int, Redriven]:
    """Read the ledger's entries, and hold them against the topic as it is.

    Raises:
        StateError: They can't be read, or are of another dead-letter topic of this name.
        UnreachableError: No broker answers.
    """
    topic = settings.dead_letter_topic
    count = (await describe_topic(settings, topic)).partition_count
    found = numbered(entries, f"{ledger_name(settings)} in {settings.positions_topic}")
    for number in found:
        if number >= count or not await _is_of(settings, number, found[number]):
            message = (
                f"{topic}[{number}] lacks a letter that was sent again: the topic was deleted and "
                "made anew. To take none of its letters for sent, run once with --forget"
            )
            raise StateError(message)
    return found


def numbered(entries: Mapping[bytes, bytes], ledger: str) -> dict[int, Redriven]:
    """Return what a ledger's entries say, by the partition that is their key.

    Raises:
        StateError: One can't be read.
    """
    found: dict[int, Redriven] = {}
    for key, entry in entries.items():
        where = f"entry {key!r} of {ledger}"
        # As it is written: int() takes white space, signs and digits of any script too.
        if not _NUMBER.fullmatch(key):
            message = f"{where}: the key is no partition; a newer version may have written it"
            raise StateError(message)
        found[int(key)] = decode_redriven(entry, where)
    return found


async def _is_of(settings: Settings, number: int, redriven: Redriven) -> bool:
    place = TopicPartition(settings.dead_letter_topic, number)
    async with partition_reader(client_settings(settings), place) as reader:
        start = (await reader.beginning_offsets([place]))[place]
        end = (await reader.end_offsets([place]))[place]
        last = redriven.last
        is_there = last is not None and start <= last[0] < end
        timestamp_ms = await timestamp_of(reader, place, last[0]) if last and is_there else None
    return redriven.is_of(start, end, timestamp_ms)
