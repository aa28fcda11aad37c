"""One partition's log, and what a worker commits of it."""

from processor.protocol.port import Survey


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
