"""The limit of librdkafka: what ``passthrough.py`` does, through confluent-kafka.

Consumes read_committed, joins values into blobs of about 20 KB, produces them to the partition they
came from and commits offsets in the same transaction.
"""

import signal
import sys
import time
from collections import defaultdict
from typing import Any

from chunking import Job, job_of
from confluent_kafka import Consumer, Producer

BLOB_BYTES = 20_000
FETCH_RECORDS = 5_000


class Blobs:
    """What waits to be sent, by partition."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer, self._topic = producer, topic
        self._held: dict[int, list[bytes]] = defaultdict(list)
        self._sizes: dict[int, int] = defaultdict(int)

    def add(self, messages: list[Any]) -> None:
        """Join what was fetched, and send each blob as it fills."""
        for message in messages:
            if message.error():
                sys.exit(str(message.error()))
            partition, value = message.partition(), message.value()
            self._held[partition].append(value)
            self._sizes[partition] += len(value)
            if self._sizes[partition] >= BLOB_BYTES:
                self._send(partition)

    def flush(self) -> None:
        """Send the rest."""
        for partition, held in self._held.items():
            if held:
                self._send(partition)

    def _send(self, partition: int) -> None:
        blob = b"\n".join(self._held[partition])
        while True:
            try:
                self._producer.produce(self._topic, blob, partition=partition)
            except BufferError:
                self._producer.poll(0.05)
            else:
                break
        self._held[partition].clear()
        self._sizes[partition] = 0


def pass_through(job: Job) -> None:
    """Run until SIGTERM."""
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    consumer = Consumer(
        {
            "bootstrap.servers": job.bootstrap,
            "group.id": job.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "max.partition.fetch.bytes": 4 << 20,
            "queued.max.messages.kbytes": 65_536,
            "fetch.queue.backoff.ms": 5,
        }
    )
    producer = Producer(
        {
            "bootstrap.servers": job.bootstrap,
            "transactional.id": job.group,
            "linger.ms": 10,
            "batch.size": 1_000_000,
            "message.max.bytes": 8_000_000,
            "queue.buffering.max.kbytes": 262_144,
        }
    )
    consumer.subscribe([job.records_topic])
    producer.init_transactions()
    while not stopping:
        fetched = consumer.consume(FETCH_RECORDS, 0.1)
        if not fetched:
            continue
        began_at = time.monotonic()
        producer.begin_transaction()
        blobs = Blobs(producer, job.out_topic)
        blobs.add(fetched)
        while time.monotonic() - began_at < job.commit_interval_s:
            blobs.add(consumer.consume(FETCH_RECORDS, 0.01))
            producer.poll(0)
        blobs.flush()
        positions = consumer.position(consumer.assignment())
        producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
        producer.commit_transaction()
    consumer.close()


if __name__ == "__main__":
    pass_through(job_of(sys.argv[1:]))
