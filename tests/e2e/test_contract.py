"""Apache Kafka keeps the contract that the simulation takes for granted."""

import asyncio
import uuid
from contextlib import asynccontextmanager

import pytest

from processor.kafka.broker import KafkaPartitionBroker
from processor.kafka.flow import chunking
from processor.settings import Settings
from tests.e2e import asking
from tests.e2e.log_reading import end_offsets, read_log
from tests.e2e.producing import producer
from tests.simulation.broker import CHANGELOG, CHUNKS, DEAD_LETTERS
from tests.simulation.contract import CASES

LIMIT = 50_000


class Side:
    """Fresh topics of one partition on a running broker."""

    limit = LIMIT
    moments_s = (0.001, 0.003, 0.006, 0.01, 0.02, 5.0)

    def __init__(self, bootstrap):
        name = f"contract-{uuid.uuid4().hex}"
        self._settings = Settings(
            bootstrap_servers=bootstrap,
            app_id=name,
            records_topic=f"{name}.records",
            chunks_topic=f"{name}.chunks",
            dead_letter_topic=f"{name}.dead-letter",
            max_chunk_bytes=LIMIT // 2,
        )
        self._topics = {
            CHUNKS: self._settings.chunks_topic,
            CHANGELOG: self._settings.changelog_topic,
            DEAD_LETTERS: self._settings.dead_letter_topic,
        }
        self._bootstrap = bootstrap
        self._producer = None
        self._owners = []

    async def create(self):
        for topic in (self._settings.records_topic, *self._topics.values()):
            await asking.create_topic(self._bootstrap, topic, partitions=1, max_message_bytes=LIMIT)

    async def close(self):
        for owner in self._owners:
            await owner.discard()

    def owner(self):
        owner = KafkaPartitionBroker(self._settings, chunking(self._settings), 0, None)
        self._owners.append(owner)
        return owner

    async def append(self, value):
        if self._producer is not None:
            await self._producer.send_and_wait(self._settings.records_topic, value, b"key")
            return
        async with producer(self._bootstrap) as client:
            await client.send_and_wait(self._settings.records_topic, value, b"key")

    @asynccontextmanager
    async def transaction(self, *, commit):
        async with producer(self._bootstrap, transactional_id=uuid.uuid4().hex) as client:
            self._producer = client
            await client.begin_transaction()
            yield
            await (client.commit_transaction() if commit else client.abort_transaction())
            self._producer = None

    async def read(self, topic):
        found = await read_log(self._bootstrap, self._topics[topic], settled=True, patience_s=10)
        return [message.value for message in found]

    async def ends(self, topic):
        name = self._topics[topic]
        high = await end_offsets(self._bootstrap, name)
        stable = await end_offsets(self._bootstrap, name, isolation_level="read_committed")
        return sum(high.values()), sum(stable.values())


@pytest.mark.parametrize("case", CASES)
def test_kafka(case, broker):
    async def run():
        side = Side(broker.bootstrap)
        await side.create()
        try:
            await case(side)
        finally:
            await side.close()

    asyncio.run(run())
