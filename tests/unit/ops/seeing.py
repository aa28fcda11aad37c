"""Who looks at a worker, and what it is shown."""

import pytest

from processor.ops.exposition import Exposition
from processor.ops.vitals import PartitionVitals, Vitals, VitalsReader
from processor.protocol.partitions import Partitions
from processor.protocol.port import Head
from tests.unit.protocol.story import CONFIG, Story, raw

#: A partition of which every gauge has a value.
ALL_KNOWN = PartitionVitals(0, "ready", lag_records=0, lag_s=0.0, progressed_at_ms=9)


class Member:
    def __init__(self):
        self.ends = {}

    def answered_s_ago(self):
        return 0.5

    def stable_end(self, partition):
        return self.ends.get(partition)


class Seen:
    """One partition of a worker, and who looks at it."""

    def __init__(self, config=CONFIG):
        self.story, self.member = Story(config), Member()
        self.clock = self.story.clock
        self.partitions = Partitions(lambda _: self.story.partition, 0.1, pytest.fail)
        self.reader = VitalsReader(self.partitions, self.clock, lambda: self.member, list)

    async def assign(self):
        await self.partitions.assign({0}, lambda: True)

    def feed(self, *records, at_end=False):
        now_ms = self.clock.now_ms()
        position = records[-1].offset + 1 if records else self.story.partition.state.position
        self.story.feed(*records, head=Head(now_ms, position) if at_end else None)

    def now(self):
        [it] = self.reader.read().partitions
        return it

    def raw(self, offset, words, **how):
        return raw(offset, words, at_s=self.clock.now_ms() // 1000, **how)


def exposition(metrics, *partitions):
    vitals = Vitals(0, is_joined=True, answered_s_ago=0.0, stuck=(), partitions=partitions)
    return Exposition(metrics, "records", lambda: vitals, lambda: True)
