"""One partition's log, and what a worker commits of it."""

from processor.protocol.partition import Partition
from processor.protocol.port import Batch, Survey
from processor.testing import FakeClock, RecordingMetrics


class OneLog:
    """The broker's side of a partition, of which nothing fails.

    Attributes:
        log_start: First offset that is left.
        entries: The changelog's latest, by key; ``None`` for a deleted one.
        chunks: Their messages.
        position: Where the worker reads next, as it sought.
    """

    def __init__(self, log):
        self.log, self.log_start = log, 0
        self.entries, self.chunks, self.position, self.committed = {}, [], None, None

    @property
    def end(self):
        return self.log[-1].offset + 1 if self.log else 0

    async def fence(self):
        pass

    async def read_changelog(self, taker):
        taker.take(self.entries.items())

    async def survey(self, _):
        return Survey(1, self.log_start, self.end, self.committed, {})

    async def seek(self, offset, _):
        self.position = offset

    async def commit(self, transaction):
        self.entries |= transaction.entries
        self.chunks += transaction.output
        self.committed = transaction.next_offset

    async def discard(self):
        pass


class WorkedLog(OneLog):
    """One log, and workers of it."""

    async def work(self, config, until, *, is_lost=False):
        """Open with ``config`` and feed up to an offset; what the last batch gave may be lost."""
        partition = Partition(0, self, config, FakeClock(), RecordingMetrics())
        await partition.open(lambda: True)
        await partition.commit()
        position = self.position
        for it in [it for it in self.log if position <= it.offset < until]:
            following = it.offset + 1
            partition.feed(Batch(0, partition.incarnation, position, following, [it], 10**9, None))
            position = following
            if not (is_lost and following >= until):
                await partition.commit()
        await partition.close()
