"""Which records repeat another: producers that send twice put the same ``record-id`` on both.

A record repeats one of its session with the same id at most so many offsets before it, a repeated
one included. That is a function of the log and a number alone. The log is the state, too: whoever
opens a partition reads that many offsets before the replay, and knows what the last owner knew.
Ids are kept as digests, since a header may be as long as a record.
"""

from collections import OrderedDict
from collections.abc import Container, Sequence
from collections.abc import Set as AbstractSet
from hashlib import blake2b
from typing import Final

from processor.core.records import RECORD_ID
from processor.protocol.port import LogRecord

_DIGEST_BYTES: Final = 16


class RecordIds:
    """The ids in the last offsets of one partition.

    Args:
        size: How many offsets back a record is still remembered; at most so many ids are kept.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._offsets: OrderedDict[bytes, int] = OrderedDict()

    def remembered(self, records: Sequence[LogRecord], low: int) -> Sequence[LogRecord]:
        """Take the next records, those before ``low`` only for their ids; return the others."""
        before = [it for it in records if it.offset < low]
        for record in before:
            self.is_repeated(record)
        return records[len(before) :]

    def repeated(
        self, records: Sequence[LogRecord], sessionless: Container[bytes | None]
    ) -> AbstractSet[int]:
        """Take the next records and return the offsets of those that repeat one before them.

        Args:
            records: The records.
            sessionless: Keys of those that belong to no session, and repeat none.
        """
        if not self._size:
            return frozenset()
        return {it.offset for it in records if self.is_repeated(it) and it.key not in sessionless}

    def is_repeated(self, record: LogRecord) -> bool:
        """Take the next record of the log and tell whether it repeats one before it.

        Ends, and records without an id or without a key, repeat none.
        """
        name = dict(record.headers).get(RECORD_ID) if record.headers else None
        if not name or not record.key or record.value is None:
            return False
        text = b"%d:%b%b" % (len(record.key), record.key, name)
        digest = blake2b(text, digest_size=_DIGEST_BYTES).digest()
        oldest = record.offset - self._size
        while self._offsets and next(iter(self._offsets.values())) < oldest:
            self._offsets.popitem(last=False)
        is_repeated = self._offsets.pop(digest, None) is not None
        self._offsets[digest] = record.offset
        return is_repeated
