"""Reading partitions without a group: the changelog, single records, both topics of a proof."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from processor.core.errors import ConfigError, StateError, UnreachableError
from processor.kafka import record_reader
from processor.kafka.connection import NO_ANSWER
from processor.kafka.fetched import take_fetched
from processor.kafka.rights import FORBIDDEN
from processor.protocol.loading import AllEntries
from processor.protocol.port import EntryTaker, LogRecord

#: An empty partition answers only after this long, so it is part of every opening.
_POLL_S: Final = 0.05
#: How long a foreign transaction may hide the end of a partition that we must read to its end.
_HANGING_S: Final = 70.0
#: Larger ones cost more CPU, not less: Python's garbage collector looks at all that is held.
_FETCH_BYTES: Final = 1 << 20


class Ends(NamedTuple):
    """Where a partition ends: for a read_committed reader (last stable offset), and altogether."""

    stable: int
    high: int


@asynccontextmanager
async def partition_reader(
    client: dict[str, Any],
    *partitions: TopicPartition,
    isolation_level: Literal["read_committed", "read_uncommitted"] = "read_committed",
) -> AsyncIterator[AIOKafkaConsumer]:
    """Yield a started consumer, assigned to ``partitions``.

    Raises:
        ConfigError: The broker does not let us.
        UnreachableError: It does not answer.
    """
    record_reader.install()
    reader = AIOKafkaConsumer(
        **client,
        isolation_level=isolation_level,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=_FETCH_BYTES,
        fetch_max_wait_ms=round(_POLL_S * 1000),
    )
    try:
        await reader.start()
        reader.assign(list(partitions))
        yield reader
    except (*NO_ANSWER, KafkaError) as error:
        names = ", ".join(f"{it.topic}[{it.partition}]" for it in partitions)
        message = f"can't read {names}: {error!r}"
        kind = ConfigError if isinstance(error, FORBIDDEN) else UnreachableError
        raise kind(message) from error
    finally:
        await reader.stop()


async def read_to_end(
    reader: AIOKafkaConsumer, partition: TopicPartition, end: int | None = None
) -> AsyncIterator[Sequence[LogRecord]]:
    """Yield the records from the reader's position to the high watermark as of now, in lists.

    With an ``end`` the last list is that which reaches it, and may go beyond.

    Positions are compared, not records: commit markers are never delivered.

    Raises:
        StateError: A transaction hangs before the watermark and stays so.
    """
    waited_from = asyncio.get_running_loop().time()
    while True:
        records = await take_fetched(reader, partition, _POLL_S)
        # The first answer after the call tells the watermark as of now, or a little later.
        end = reader.highwater(partition) if end is None else end
        if records:
            waited_from = asyncio.get_running_loop().time()
            yield records
        position = await reader.position(partition)
        if end is not None and position >= end:
            return
        if asyncio.get_running_loop().time() - waited_from > _HANGING_S:
            message = (
                f"{partition.topic}[{partition.partition}]: a transaction hangs at offset "
                f"{position}, before the end at {end}; find it with `kafka-transactions.sh "
                "find-hanging` and abort it"
            )
            raise StateError(message)


async def stream_entries(
    client: dict[str, Any], partition: TopicPartition, taker: EntryTaker
) -> None:
    """Hand every committed entry of a compacted topic's partition to ``taker``.

    Raises:
        StateError: A transaction hangs before the end and stays so.
        UnreachableError: The broker does not answer.
    """
    async with partition_reader(client, partition) as reader:
        async for records in read_to_end(reader, partition):
            taker.take((it.key or b"", it.value) for it in records)


async def latest_entries(client: dict[str, Any], partition: TopicPartition) -> dict[bytes, bytes]:
    """Return the latest committed entry of every key; raises what ``stream_entries`` does."""
    kept = AllEntries()
    await stream_entries(client, partition, kept)
    return kept.entries


async def message_count(client: dict[str, Any], topic: str, partition_count: int) -> int:
    """Return how many offsets there are from start to end, in all partitions of a topic.

    Raises:
        UnreachableError: The broker does not answer.
    """
    partitions = [TopicPartition(topic, number) for number in range(partition_count)]
    async with partition_reader(client, *partitions) as reader:
        starts = await reader.beginning_offsets(partitions)
        ends = await reader.end_offsets(partitions)
    return sum(ends[it] - starts[it] for it in partitions)


async def ends_of(client: dict[str, Any], topic: str, numbers: Iterable[int]) -> dict[int, Ends]:
    """Ask the broker, over a connection of its own, where partitions end now.

    Raises:
        UnreachableError: It does not answer, not for each of them.
    """
    places = [TopicPartition(topic, it) for it in numbers]
    async with partition_reader(client, *places) as reader:
        stable = await reader.end_offsets(places)
    # After the stable one, so that it is never below.
    async with partition_reader(client, *places, isolation_level="read_uncommitted") as reader:
        high = await reader.end_offsets(places)
    return {it.partition: Ends(stable[it], high[it]) for it in places}


async def timestamp_of(
    reader: AIOKafkaConsumer, partition: TopicPartition, offset: int
) -> int | None:
    """Return the timestamp of the record at ``offset``, ``None`` if there is none."""
    reader.seek(partition, offset)
    try:
        async for records in read_to_end(reader, partition):
            first = records[0]
            return first.timestamp if first.offset == offset else None
    except OffsetOutOfRangeError:
        return None
    return None
