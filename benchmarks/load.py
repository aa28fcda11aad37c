"""Makes a topic and loads made transcripts into it, in whole batches."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code
from more_itertools import chunked

from processor.demo.transcripts import transcripts
from processor.kafka.partitioner import partitioner

PARTITIONS = 4
SESSIONS = 256
MAX_LINE_BYTES = 8_192
SEED = 7
_LINES_AT_ONCE = 5_000
_partition_of = partitioner(PARTITIONS)


class Line(NamedTuple):
    """One record to produce."""

    session: bytes
    value: bytes
    created_at_ms: int | None = None
    """None on a topic that takes the time of appending."""


def made_lines(count: int) -> Iterable[Line]:
    """Make lines of ``SESSIONS`` sessions, interleaved."""
    made = transcripts(count, SEED, sessions=SESSIONS, max_line_bytes=MAX_LINE_BYTES)
    return (Line(session.encode(), value) for session, value in made)


async def create_topic(bootstrap: str, topic: str, **configs: str) -> None:
    """Create a topic; a broker's refusal is an error."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        settings = {name.replace("_", "."): value for name, value in configs.items()}
        new = NewTopic(topic, PARTITIONS, 1, topic_configs=settings)
        answer = await admin.create_topics([new])
    finally:
        await admin.close()
    for name, code, reason in answer.topic_errors:
        if code:
            error = for_code(code)
            message = f"could not create topic {name}: {reason}"
            raise error(message)


async def load(bootstrap: str, topic: str, count: int) -> int:
    """Load ``count`` made lines into a new topic, keyed by session.

    Returns:
        The bytes of their values together.
    """
    await create_topic(bootstrap, topic, message_timestamp_type="LogAppendTime", retention_ms="-1")
    value_bytes = 0
    async with batching(bootstrap) as producer:
        for lines in chunked(made_lines(count), _LINES_AT_ONCE):
            await send_all(producer, topic, lines)
            value_bytes += sum(len(line.value) for line in lines)
    return value_bytes


@asynccontextmanager
async def batching(bootstrap: str) -> AsyncIterator[AIOKafkaProducer]:
    """Give a producer for ``send_all``."""
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap, enable_idempotence=True, max_batch_size=500_000
    )
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def send_all(producer: AIOKafkaProducer, topic: str, lines: Iterable[Line]) -> None:
    """Send lines in batches, a fraction of what one by one costs; wait until all are there."""
    runs: dict[int, list[Line]] = defaultdict(list)
    for line in lines:
        runs[_partition_of(line.session)].append(line)
    await asyncio.gather(
        *(_send_run(producer, topic, partition, run) for partition, run in runs.items())
    )


async def _send_run(
    producer: AIOKafkaProducer, topic: str, partition: int, run: Iterable[Line]
) -> None:
    deliveries = []
    batch = producer.create_batch()
    for session, value, created_at_ms in run:
        if batch.append(key=session, value=value, timestamp=created_at_ms) is None:
            deliveries.append(await producer.send_batch(batch, topic, partition=partition))
            batch = producer.create_batch()
            batch.append(key=session, value=value, timestamp=created_at_ms)
    deliveries.append(await producer.send_batch(batch, topic, partition=partition))
    await asyncio.gather(*deliveries)
