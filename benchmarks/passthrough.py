"""The limit to measure against: aiokafka, exactly once, with nothing done to the records.

Consumes read_committed, joins values into blobs of about 20 KB, produces them to the partition they
came from and commits offsets in the same transaction. No parsing, no state, no sessions.
"""

import asyncio
import signal
import time
from collections.abc import Mapping, Sequence

import click
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition

BLOB_BYTES = 20_000
FETCH_MS = 100
FETCH_RECORDS = 5_000


class Blobs:
    """What one transaction sends."""

    def __init__(self, producer: AIOKafkaProducer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._held: dict[int, list[bytes]] = {}
        self._sizes: dict[int, int] = {}
        self._deliveries: list[asyncio.Future[object]] = []
        self.positions: dict[TopicPartition, int] = {}

    async def add(self, fetched: Mapping[TopicPartition, Sequence[ConsumerRecord]]) -> None:
        """Join what was fetched, and send each blob as it fills."""
        for at, records in fetched.items():
            held = self._held.setdefault(at.partition, [])
            size = self._sizes.get(at.partition, 0)
            for record in records:
                held.append(record.value)
                size += len(record.value)
                if size >= BLOB_BYTES:
                    await self._send(at.partition)
                    size = 0
            self._sizes[at.partition] = size
            self.positions[at] = records[-1].offset + 1

    async def flush(self) -> None:
        """Send the rest and wait until all is delivered."""
        for partition, held in self._held.items():
            if held:
                await self._send(partition)
        await asyncio.gather(*self._deliveries)

    async def _send(self, partition: int) -> None:
        held = self._held[partition]
        sent = await self._producer.send(self._topic, b"\n".join(held), partition=partition)
        self._deliveries.append(sent)
        held.clear()


async def pass_through(
    bootstrap: str, records_topic: str, out_topic: str, group: str, commit_interval_s: float
) -> None:
    """Run until SIGTERM."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    consumer = AIOKafkaConsumer(
        records_topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        max_partition_fetch_bytes=4 << 20,
        fetch_max_wait_ms=50,
        check_crcs=False,
    )
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        transactional_id=group,
        linger_ms=10,
        max_batch_size=1_000_000,
        max_request_size=8_000_000,
    )
    await consumer.start()
    await producer.start()
    while not stopping.is_set():
        fetched = await consumer.getmany(timeout_ms=FETCH_MS, max_records=FETCH_RECORDS)
        if not fetched:
            continue
        began_at = time.monotonic()
        async with producer.transaction():
            blobs = Blobs(producer, out_topic)
            await blobs.add(fetched)
            while time.monotonic() - began_at < commit_interval_s:
                await blobs.add(
                    await consumer.getmany(timeout_ms=FETCH_MS, max_records=FETCH_RECORDS)
                )
            await blobs.flush()
            await producer.send_offsets_to_transaction(blobs.positions, group)
    await consumer.stop()
    await producer.stop()


@click.command()
@click.argument("bootstrap")
@click.argument("records_topic")
@click.argument("out_topic")
@click.argument("group")
@click.argument("commit_interval_s", type=float)
def main(
    bootstrap: str, records_topic: str, out_topic: str, group: str, commit_interval_s: float
) -> None:
    """Pass RECORDS_TOPIC through to OUT_TOPIC."""
    asyncio.run(pass_through(bootstrap, records_topic, out_topic, group, commit_interval_s))


if __name__ == "__main__":
    main()
