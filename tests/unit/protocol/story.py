"""One partition over a broker in memory, and the verbs of a test."""

import asyncio
import json

from processor.core.policy import ChunkPolicy, OrIdle
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.partition import Partition
from processor.protocol.port import Batch, Survey
from processor.testing import FakeClock, RecordingMetrics
from tests.builders import WordCounter
from tests.history import Message

POLICY = ChunkPolicy(max_tokens=3, flush=OrIdle(30))
CONFIG = ChunkerConfig("records", POLICY, WordCounter())


class MemoryBroker:
    """Keeps what was committed; fails the next commit with ``failure``."""

    def __init__(self):
        self.entries, self.transactions, self.sought = {}, [], None
        self.committed = self.failure = None
        self.log_end = 0

    async def fence(self):
        pass

    async def read_changelog(self, taker):
        taker.take(self.entries.items())

    async def survey(self, _):
        return Survey(4, 0, self.log_end, self.committed, {})

    async def seek(self, offset, incarnation):
        self.sought = (offset, incarnation)

    async def commit(self, transaction):
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        self.transactions.append(transaction)
        self.committed = self.log_end = transaction.next_offset
        for key, value in transaction.entries.items():
            self.entries[key] = value

    async def owns(self):
        return True

    async def discard(self):
        pass


def raw(offset, words, key=b"s1", at_s=0, headers=()):
    value = None if words is None else " ".join(["w"] * words).encode()
    return Message(offset, key, value, at_s * 1000, headers)


class Story:
    """A partition, its broker, and the verbs of a test."""

    def __init__(self, config=CONFIG, broker=None):
        self.broker = broker or MemoryBroker()
        self.metrics, self.clock = RecordingMetrics(), FakeClock()
        self.partition = Partition(0, self.broker, config, self.clock, self.metrics)

    async def open(self):
        await self.partition.open(lambda: True)

    def feed(self, *records, incarnation=None, head=None, first=None):
        state = self.partition.state
        first = state.position if first is None else first
        following = records[-1].offset + 1 if records else first
        incarnation = self.partition.incarnation if incarnation is None else incarnation
        now_ms = self.clock.now_ms()
        return self.partition.feed(Batch(0, incarnation, first, following, records, now_ms, head))

    @property
    def chunks(self):
        return [json.loads(it.value) for step in self.broker.transactions for it in step.output]


def play(story):
    asyncio.run(story())
