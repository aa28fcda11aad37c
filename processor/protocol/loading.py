"""What is kept of a changelog while it is read, entry by entry in the order of the log.

A changelog holds an entry for every session that ever was, and of many sessions several. Made into
objects first and sorted out then, it took several times the memory of what stays; so each kind of
reader says what it keeps, and keeps no more at any time.
"""

from collections.abc import Iterable, Iterator

from processor.core.dormant import DormantSessions
from processor.protocol.changelog import PARTITION_KEY, read_dormant
from processor.protocol.port import Entry, PartitionBroker


class AllEntries:
    """Takes every entry as it is.

    Attributes:
        entries: The latest of each key.
    """

    def __init__(self) -> None:
        self.entries: dict[bytes, bytes] = {}

    def take(self, entries: Iterable[Entry]) -> None:
        """Take the next entries."""
        for key, value in entries:
            if value is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = value


class OwnEntry(AllEntries):
    """Takes the partition's own entry alone."""

    def take(self, entries: Iterable[Entry]) -> None:
        """Take the next entries."""
        super().take(it for it in entries if it[0] == PARTITION_KEY)


class SessionEntries:
    """Takes sessions, packing those with nothing open at once.

    Args:
        keeps_ends: Ended sessions are forgotten some time: when they ended, which no packed
            session tells, is kept too.

    Attributes:
        dormant: The sessions whose latest entry has nothing open.
        entries: The latest of each other key: of the partition, of sessions with open records or
            an end to keep, and what can't be read, for ``decode_sessions`` to say so if it is
            still there at the end.
    """

    def __init__(self, *, keeps_ends: bool = False) -> None:
        self._keeps_ends = keeps_ends
        self.dormant = DormantSessions()
        self.entries: dict[bytes, bytes] = {}

    def take(self, entries: Iterable[Entry]) -> None:
        """Take the next entries."""
        self.dormant.put_all(self._dormant_ones(entries))

    def _dormant_ones(
        self, entries: Iterable[Entry]
    ) -> Iterator[tuple[bytes, int, int, bytes, bool]]:
        drop, kept = self.dormant.drop, self.entries
        for key, value in entries:
            entry = None if value is None or key == PARTITION_KEY else read_dormant(key, value)
            if entry is not None and not (self._keeps_ends and entry.ended):
                kept.pop(key, None)
                yield key, entry.t, entry.next_offset, entry.digest, entry.ended
                continue
            drop(key)
            if value is None:
                kept.pop(key, None)
            else:
                kept[key] = value


async def all_entries(broker: PartitionBroker) -> dict[bytes, bytes]:
    """Return the latest entry of every key of a partition's changelog."""
    kept = AllEntries()
    await broker.read_changelog(kept)
    return kept.entries
