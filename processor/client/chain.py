"""What a reader holds against each chunk: it follows the one before it in its session.

The first chunk of a session that a reader meets follows the position that it brings along. Where it
brings none, ``t`` has to be 1 if the partition was read from its first message; else what that
chunk says of those before it is taken on trust.
"""

from collections.abc import Callable, Iterable
from typing import Final

from processor.client.chunk import Chunk, Position
from processor.core.digest import first_digest, next_digest
from processor.core.errors import ChainError, DigestError, GapError, RepeatError

_REMEDY: Final = "`processor verify` tells what is wrong in the topics"


class Chains:
    """Where each session of the partitions read stands.

    Args:
        after: Returns where the reader stands in a chunk's session, ``None`` where it has not
            begun; asked for the first chunk of a session in its partition.
    """

    def __init__(self, after: Callable[[Chunk], Position | None]) -> None:
        self._after = after
        self._positions: dict[tuple[int, str], Position] = {}
        self._whole: set[int] = set()

    def begin(self, partition: int) -> None:
        """Note that a partition is read from its first message."""
        self._whole.add(partition)

    def forget(self, partitions: Iterable[int]) -> None:
        """Forget partitions that others read meanwhile."""
        gone = set(partitions)
        self._whole -= gone
        self._positions = {key: it for key, it in self._positions.items() if key[0] not in gone}

    def take(self, chunk: Chunk) -> bool:
        """Judge the next chunk; tell whether it is new to this reader.

        Raises:
            GapError: Chunks of its session are missing before it.
            RepeatError: Its ``t`` was there before.
            DigestError: Its digest, or the previous one that it names, is wrong.
            ChainError: Its session stands in another partition than before.
        """
        key = chunk.partition, chunk.session
        before = self._positions.get(key) or self._first(chunk)
        if before.partition != chunk.partition:
            what = f"stood in partition {before.partition} before; give each a session of its own"
            raise _fault(ChainError, chunk, what)
        if chunk.offset == before.offset and chunk.digest != before.digest:
            what = f"has the digest {chunk.digest}; when it was read it had {before.digest}"
            raise _fault(DigestError, chunk, what)
        if chunk.offset <= before.offset:
            self._positions[key] = before
            return False
        if before.final and chunk.t == 1:  # the worker forgot the session, as it was told to
            before = _start(chunk)
        if chunk.t > before.t + 1:
            raise _fault(GapError, chunk, f"comes after t={before.t}")
        if chunk.t <= before.t:
            raise _fault(RepeatError, chunk, f"comes after t={before.t}")
        if chunk.previous_digest != before.digest:
            what = f"names {chunk.previous_digest} as the digest of t={before.t}, it is"
            raise _fault(DigestError, chunk, f"{what} {before.digest}")
        _check_digest(chunk)
        self._positions[key] = chunk.position
        return True

    def _first(self, chunk: Chunk) -> Position:
        given = self._after(chunk)
        if given is not None:
            return given
        if chunk.t == 1 or chunk.partition in self._whole:
            return _start(chunk)
        return Position(chunk.t - 1, chunk.previous_digest, chunk.partition, -1, final=False)


def _start(chunk: Chunk) -> Position:
    return Position(0, first_digest(chunk.session).hex(), chunk.partition, -1, final=False)


def _check_digest(chunk: Chunk) -> None:
    values = [it.value for it in chunk.records if it.value is not None]
    if len(values) < len(chunk.records):
        return  # the digest covers bytes that stand in the records topic alone
    digest = next_digest(bytes.fromhex(chunk.previous_digest), values).hex()
    if digest != chunk.digest:
        raise _fault(DigestError, chunk, f"has the digest {chunk.digest}, its records {digest}")


def _fault(kind: type[ChainError], chunk: Chunk, what: str) -> ChainError:
    place = f"partition {chunk.partition}, offset {chunk.offset}"
    message = f"the chunk {chunk.session!a} t={chunk.t} ({place}) {what}; {_REMEDY}"
    return kind(message, chunk.session, chunk.t, (chunk.partition, chunk.offset))
