"""Sessions with nothing open, packed: an index of numbers and one buffer.

Theory of operation. A deployment keeps every session that it ever saw, and nearly all of them are
silent, so what one costs in memory bounds how many there can be: as an object it takes 331 bytes,
as ``bytes`` in a ``dict`` 203, here about 105 with a key of 36 characters. The buffer holds one
entry after the other, key first and state behind it. The index (open addressing, linear probing,
at most two thirds full) says where an entry begins, beside the upper part of the key's hash. That
part spares nearly all comparisons with other keys, and its upper bits are the slot: so a larger
index is made from the smaller one alone, front to back, without a look at the keys.

An entry keeps its place: a session that wakes leaves it behind, marked, and takes it again when it
falls asleep. Only a forgotten session leaves waste, and goes when the index is next made anew.

Making an index anew takes 0.2 µs a session, and over 1 µs where there is waste: with ten million
of them the worker would stand still for seconds. So there are many small ones, chosen by the lower
bits of the hash, each of which grows by itself. And the buffer is in blocks that are never moved:
as many growing ones in one piece would leave holes of half their size behind them.
"""

from array import array
from collections.abc import Iterable, Iterator
from itertools import chain
from struct import Struct
from typing import Final

from processor.core.session_state import SessionState

# An entry is the key's length, the key, and: asleep, ended, t, next offset, digest.
_KEY_LENGTH: Final = Struct("<I")
_STATE: Final = Struct("<B?QQ32s")
_AWAKE: Final = 0
_ASLEEP: Final = 1
#: The lower bits of an index slot are the place plus 1, since 0 is an empty slot: room for 64 GiB.
#: Above stands the same part of the key's hash: enough for 178 million sessions.
_PLACE: Final = (1 << 36) - 1
_HASHED: Final = ~_PLACE
_HASH_BITS: Final = 64
#: Of a place the lower bits are where its entry begins in its block, the upper ones which block.
_IN_BLOCK: Final = (1 << 16) - 1
_BLOCK_BITS: Final = 16
_FIRST_SLOTS: Final = 1 << 3
_SHELVES: Final = 1 << 6


class DormantSessions:
    """What is known of sessions without open records, by key."""

    def __init__(self) -> None:
        self._shelves = [_Shelf() for _ in range(_SHELVES)]

    def __len__(self) -> int:
        return sum(it.count for it in self._shelves)

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(it.sessions() for it in self._shelves)

    @property
    def size_bytes(self) -> int:
        """Memory of it all."""
        return sum(it.size_bytes for it in self._shelves)

    def put(self, key: bytes, t: int, next_offset: int, digest: bytes, *, ended: bool) -> None:
        """Set what is known of a session.

        Args:
            key: The session's name in UTF-8.
            t: As in ``SessionState``.
            next_offset: Likewise.
            digest: Likewise.
            ended: Likewise.
        """
        self.put_all(((key, t, next_offset, digest, ended),))

    def put_all(self, sessions: Iterable[tuple[bytes, int, int, bytes, bool]]) -> None:
        """Set what is known of sessions: of each what ``put`` takes, in that order."""
        shelves = self._shelves
        for key, t, next_offset, digest, ended in sessions:
            hashed = hash(key)
            state = _STATE.pack(_ASLEEP, ended, t, next_offset, digest)
            shelves[hashed % _SHELVES].put(key, hashed, state)

    def get(self, session: str) -> SessionState | None:
        """Return the state of ``session``, or ``None`` if it is not here."""
        key = session.encode()
        return _unpacked(session, self._shelf(key).get(key))

    def pop(self, session: str) -> SessionState | None:
        """Return the state of ``session`` and drop it, or return ``None`` if it is not here."""
        key = session.encode()
        return _unpacked(session, self._shelf(key).pop(key))

    def drop(self, key: bytes) -> None:
        """Drop the session of this name (UTF-8), if it is here."""
        self._shelf(key).pop(key)

    def _shelf(self, key: bytes) -> "_Shelf":
        return self._shelves[hash(key) % _SHELVES]


def _unpacked(session: str, state: bytes | None) -> SessionState | None:
    if state is None:
        return None
    _, ended, t, next_offset, digest = _STATE.unpack(state)
    return SessionState(session, t, digest, next_offset, ended)


class _Shelf:
    """Some of the sessions: packed states by key."""

    __slots__ = ("_blocks", "_entry_count", "_index", "_limit", "_mask", "_shift", "count")

    def __init__(self) -> None:
        self.count = 0
        self._entry_count = 0
        self._blocks = [bytearray()]
        self._make_index(_FIRST_SLOTS, ())

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self._blocks)) + self._index.itemsize * len(self._index)

    def sessions(self) -> Iterator[str]:
        for key, _ in self._asleep():
            yield key.decode()

    def put(self, key: bytes, hashed: int, state: bytes) -> None:
        slot, block, state_at = self._find(key, hashed)
        if state_at:
            self.count += not block[state_at]
            block[state_at : state_at + _STATE.size] = state
            return
        block = self._blocks[-1]
        if len(block) > _IN_BLOCK:
            block = bytearray()
            self._blocks.append(block)
        place = (len(self._blocks) - 1) << _BLOCK_BITS | len(block)
        block += _KEY_LENGTH.pack(len(key)) + key + state
        self._index[slot] = (hashed & _HASHED) | place + 1
        self.count += 1
        self._entry_count += 1
        if self._entry_count > self._limit:
            self._make_room()

    def get(self, key: bytes) -> bytes | None:
        _, block, state_at = self._find(key, hash(key))
        if not state_at or not block[state_at]:
            return None
        return bytes(block[state_at : state_at + _STATE.size])

    def pop(self, key: bytes) -> bytes | None:
        _, block, state_at = self._find(key, hash(key))
        if not state_at or not block[state_at]:
            return None
        state = bytes(block[state_at : state_at + _STATE.size])
        block[state_at] = _AWAKE
        self.count -= 1
        return state

    def _find(self, key: bytes, hashed: int) -> tuple[int, bytearray, int]:
        """Return the slot of ``key``, and in which block and where its state stands or 0."""
        index, mask = self._index, self._mask
        slot = (hashed >> self._shift) & mask
        while found := index[slot]:
            if not (found ^ hashed) & _HASHED:
                named = _KEY_LENGTH.pack(len(key)) + key
                place = (found & _PLACE) - 1
                block, start = self._blocks[place >> _BLOCK_BITS], place & _IN_BLOCK
                if block.startswith(named, start):
                    return slot, block, start + len(named)
            slot = (slot + 1) & mask
        return slot, self._blocks[-1], 0

    def _asleep(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield key and state of every session."""
        for block in self._blocks:
            start = 0
            while start < len(block):
                key_at = start + _KEY_LENGTH.size
                state_at = key_at + _KEY_LENGTH.unpack_from(block, start)[0]
                start = state_at + _STATE.size
                if block[state_at]:
                    yield bytes(block[key_at:state_at]), bytes(block[state_at:start])

    def _make_room(self) -> None:
        """Make the index twice as large, unless it is waste that fills it."""
        if 2 * self.count > self._entry_count:
            self._make_index(2 * len(self._index), self._index)
            return
        asleep = list(self._asleep())
        self._blocks, self.count, self._entry_count = [bytearray()], 0, 0
        self._make_index(len(self._index), ())
        for key, state in asleep:
            self.put(key, hash(key), state)

    def _make_index(self, size: int, filled: Iterable[int]) -> None:
        """Make an index of ``size`` slots out of those of another, empty ones among them."""
        index, mask = array("q", bytes(8 * size)), size - 1
        shift = _HASH_BITS - mask.bit_length()
        for found in filled:
            if found:
                slot = (found >> shift) & mask
                while index[slot]:
                    slot = (slot + 1) & mask
                index[slot] = found
        self._index, self._mask, self._shift = index, mask, shift
        self._limit = 2 * size // 3
