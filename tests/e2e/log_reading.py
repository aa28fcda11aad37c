"""Reads whole topics, read_committed, without the worker's code."""

import time
from dataclasses import dataclass

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient


@dataclass(frozen=True, slots=True)
class Message:
    """One consumed message of any topic."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


async def partitions_of(bootstrap: str, topic: str) -> list[TopicPartition]:
    """Return the topic's partitions in order.

    Raises:
        LookupError: There is no such topic.
    """
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        if topic not in await admin.list_topics():  # describing it could create it
            message = f"no topic {topic!r} on {bootstrap}"
            raise LookupError(message)
        [described] = await admin.describe_topics([topic])
    finally:
        await admin.close()
    return [
        TopicPartition(topic, number)
        for number in sorted(partition["partition"] for partition in described["partitions"])
    ]


async def end_offsets(
    bootstrap: str, topic: str, *, isolation_level: str = "read_uncommitted"
) -> dict[TopicPartition, int]:
    """Return each partition's high watermark, or, ``read_committed``, its last stable offset."""
    partitions = await partitions_of(bootstrap, topic)
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation_level)
    await consumer.start()
    try:
        ends: dict[TopicPartition, int] = await consumer.end_offsets(partitions)
    finally:
        await consumer.stop()
    return ends


async def read_log(
    bootstrap: str, topic: str, *, settled: bool, patience_s: float
) -> list[Message]:
    """Read a topic's committed messages from its start.

    Args:
        bootstrap: The broker's address.
        topic: Which topic.
        settled: Nobody writes any more: read to the high watermark as of now. If not, read to the
            last stable offset as of now, or a little further.
        patience_s: How long nothing may come before that.

    Returns:
        The messages, those of one partition in offset order.

    Raises:
        LookupError: There is no such topic.
        TimeoutError: Nothing came for ``patience_s``: a transaction hangs.
    """
    isolation_level = "read_uncommitted" if settled else "read_committed"
    ends = await end_offsets(bootstrap, topic, isolation_level=isolation_level)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        enable_auto_commit=False,
        max_partition_fetch_bytes=8 << 20,
    )
    await consumer.start()
    try:
        consumer.assign(list(ends))
        await consumer.seek_to_beginning(*ends)
        return await _read(consumer, ends, patience_s)
    finally:
        await consumer.stop()


async def _read(
    consumer: AIOKafkaConsumer, ends: dict[TopicPartition, int], patience_s: float
) -> list[Message]:
    messages: list[Message] = []
    positions = {at: await consumer.position(at) for at in ends}
    moved_at = time.monotonic()
    # Positions, not offsets of messages: the marker that ends a transaction is never delivered.
    while behind := [at for at, end in ends.items() if positions[at] < end]:
        fetched = await consumer.getmany(*behind, timeout_ms=200)
        for at, records in fetched.items():
            messages += [
                Message(
                    at.partition, each.offset, each.timestamp, each.key, each.value, each.headers
                )
                for each in records
            ]
        before, positions = positions, {at: await consumer.position(at) for at in ends}
        if positions != before:
            moved_at = time.monotonic()
        elif time.monotonic() - moved_at > patience_s:
            stuck = ", ".join(f"{at.topic}[{at.partition}]@{positions[at]}" for at in behind)
            message = f"nothing for {patience_s:g} s after {stuck}: a transaction hangs"
            raise TimeoutError(message)
    return messages
