"""Workers of one log that stop and start, without a broker."""

import asyncio

from processor.counters import CharsOverFour
from processor.protocol.changelog import decode_partition
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.partition import Partition
from processor.protocol.port import Batch
from processor.testing import FakeClock, RecordingMetrics
from tests.history import Message
from tests.property.one_log import OneLog


def config_of(policy, *, bound=200_000):
    return ChunkerConfig(
        "records", policy, CharsOverFour(), max_replay_records=bound, accept_policy_change=True
    )


class Broker(OneLog):
    """One log, and workers of it that stop and start."""

    def __init__(self, log):
        super().__init__(log)
        self.metrics = RecordingMetrics()

    @property
    def counts(self):
        return decode_partition(self.entries, "records[0]").counts

    def messages(self):
        return [
            Message(offset, it.key, it.value, 0, tuple(it.headers))
            for offset, it in enumerate(self.chunks)
        ]

    def work(self, config, until, size, *, is_lost=False):
        """Open, feed up to an offset in batches and commit each, but maybe the last; then crash."""

        async def story():
            clock = FakeClock()
            partition = Partition(0, self, config, clock, self.metrics)
            await partition.open(lambda: True)
            await partition.commit()
            while self.position < until:
                following = min(self.position + size, until)
                records = [it for it in self.log if self.position <= it.offset < following]
                partition.feed(
                    Batch(0, partition.incarnation, self.position, following, records, 1 << 60)
                )
                self.position = following
                clock.advance(2)  # a moved position alone is committed too
                if not (is_lost and following >= until):
                    await partition.commit()
            await partition.close()

        asyncio.run(story())
