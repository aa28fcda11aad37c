"""One partition of a topic: entries, transactions, markers, and what a reader may see."""

from itertools import islice


class Entry:
    """What stands at one offset.

    Attributes:
        owner: Transactional id of its writer, ``None`` outside of transactions.
        value: The payload; ``None`` in a marker, which is never delivered.
        is_committed: ``None`` while its transaction is open.
    """

    __slots__ = ("is_committed", "owner", "value")

    def __init__(self, owner, value, *, is_committed):
        self.owner, self.value, self.is_committed = owner, value, is_committed


class Log:
    """An ordered log, as the leader of the partition has it."""

    def __init__(self, max_bytes=None):
        self.entries = []
        self.start = 0
        self.max_bytes = max_bytes
        self._stable = 0

    @property
    def high_watermark(self):
        return len(self.entries)

    @property
    def stable_end(self):
        """Last stable offset: nothing before it is undecided."""
        entries = self.entries
        while self._stable < len(entries) and entries[self._stable].is_committed is not None:
            self._stable += 1
        return self._stable

    def append(self, value, owner=None):
        self.entries.append(Entry(owner, value, is_committed=True if owner is None else None))

    def resolve(self, owner, *, commit):
        """Write the marker that ends a transaction here; return what it committed."""
        decided = []
        for entry in self.entries:
            if entry.owner == owner and entry.is_committed is None:
                entry.is_committed = commit
                decided.append(entry.value)
        self.entries.append(Entry(owner, None, is_committed=False))
        return decided if commit else []

    def read(self, position, end, *, most=None):
        """Return committed values from ``position`` to ``end``, and the position after them.

        The position passes markers and aborted entries, which aren't delivered.
        """
        found = []
        for entry in islice(self.entries, position, end):
            if entry.is_committed and entry.value is not None:
                if len(found) == most:
                    break
                found.append(entry.value)
            position += 1
        return found, position

    def committed(self):
        """Return every committed value that a reader sees now."""
        return self.read(0, self.stable_end)[0]

    def everything(self, end):
        """Return all values before ``end``, as a reader of uncommitted ones sees them."""
        return [it.value for it in self.entries[:end] if it.value is not None]
