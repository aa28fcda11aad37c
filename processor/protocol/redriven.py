"""Which letters of a partition were sent again: ranges of offsets, kept in a ledger."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from processor.core.errors import StateError
from processor.protocol.letters import Letter

_VERSION: Final = 1


class OffsetRanges:
    """Offsets as ranges in order, of which no two overlap or touch."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []
        for begin, end in ranges:
            self.add(begin, end)

    def add(self, begin: int, end: int) -> None:
        """Add the offsets from ``begin`` up to, not with, ``end``."""
        # Those that overlap it or touch it become one with it.
        first, behind = bisect_left(self._ends, begin), bisect_right(self._begins, end)
        if first < behind:
            begin = min(begin, self._begins[first])
            end = max(end, self._ends[behind - 1])
        self._begins[first:behind] = [begin]
        self._ends[first:behind] = [end]

    def __contains__(self, offset: int) -> bool:
        index = bisect_right(self._begins, offset) - 1
        return index >= 0 and offset < self._ends[index]

    def pairs(self) -> list[tuple[int, int]]:
        """Return each range as its first offset and the one after its last."""
        return list(zip(self._begins, self._ends, strict=True))


_Offset = Annotated[int, msgspec.Meta(ge=0)]


class _Entry(msgspec.Struct):
    version: int
    ranges: list[tuple[_Offset, _Offset]]
    last: tuple[_Offset, int]

    def __post_init__(self) -> None:
        if any(begin >= end for begin, end in self.ranges):
            message = "a range ends where it begins, or before"
            raise ValueError(message)


class Redriven:
    """The letters of one partition that were sent again.

    Attributes:
        last: Offset and timestamp of the highest of them, a fingerprint of the topic: one that
            was deleted and made anew counts from 0 again. ``None`` when there is none.
    """

    def __init__(self, ranges: OffsetRanges, last: tuple[int, int] | None) -> None:
        self._ranges = ranges
        self.last = last

    def __contains__(self, letter: Letter) -> bool:
        return letter.record.offset in self._ranges

    def add(self, letter: Letter, begin: int) -> None:
        """Add a letter, and the offsets from ``begin`` to it, at which there is no other letter.

        Between letters lie the markers of transactions: without these, ranges would not join.
        """
        offset, timestamp_ms = letter.record.offset, letter.record.timestamp
        self._ranges.add(begin, offset + 1)
        if self.last is None or offset > self.last[0]:
            self.last = offset, timestamp_ms

    def is_of(self, start: int, end: int, timestamp_ms: int | None) -> bool:
        """Tell whether a partition can be the one whose letters these are.

        Args:
            start: Its first offset.
            end: Its end.
            timestamp_ms: Of the message at the offset in ``last``, ``None`` if there is none.
        """
        if self.last is None or self.last[0] < start:
            return True
        return self.last[0] < end and timestamp_ms == self.last[1]

    def encode(self) -> bytes:
        """Return the ledger's entry; there must be a letter in it."""
        if self.last is None:
            message = "no letter was sent again, so there is nothing to write down"
            raise ValueError(message)
        return msgspec.json.encode(_Entry(_VERSION, self._ranges.pairs(), self.last))


def decode_redriven(entry: bytes | None, where: str) -> Redriven:
    """Return what an entry says; without one, no letter was sent again.

    Raises:
        StateError: It can't be read; ``where`` names it.
    """
    if entry is None:
        return Redriven(OffsetRanges(), None)
    try:
        seen = msgspec.json.decode(entry, type=_Entry)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"{where}: {error}; a newer version of processor may have written it"
        raise StateError(message) from error
    if seen.version != _VERSION:
        message = f"{where}: version {seen.version}, this reads {_VERSION}; update processor"
        raise StateError(message)
    return Redriven(OffsetRanges(seen.ranges), seen.last)
