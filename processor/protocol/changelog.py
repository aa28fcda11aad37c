"""Session states and the partition's own entry, to bytes and back.

Every entry starts with a version byte; an unknown one is a state fault, never a guess. The
partition's entry has the empty key, which no session can have, and is part of every transaction.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec

from processor.core.errors import ChangelogError, StateError
from processor.core.records import Carried, Headers, Record
from processor.core.session_state import SessionState
from processor.protocol.dead_letter_limit import DeadLetterMeter

PARTITION_KEY: Final = b""
REBUILD: Final = "make it anew with `processor state rebuild`"
#: The version of an entry that an older processor would misread: one of its open records has
#: headers, or its rule a member that is off by default. All others are still of version 1, so
#: that old and new workers may share an app while they are exchanged.
VERSION: Final = 2
UNKNOWN: Final = -1
_READABLE: Final = (b"\x01", b"\x02")
_CARRIED: Final = tuple(Carried)

_Entry = TypeVar("_Entry")
#: What a rule has had from the first; other members are there only where they are on.
_FIRST_RULE_MEMBERS: Final = 7


#: What a dormant session's packed state holds.
_Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Digest = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


class _OpenRecord(msgspec.Struct, array_like=True, frozen=True):
    offset: _Number
    timestamp_ms: int | None
    token_count: _Number
    size_bytes: _Number
    carried: Annotated[int, msgspec.Meta(ge=0, lt=len(_CARRIED))]
    value: bytes
    headers: Headers = ()


class _Session(msgspec.Struct, array_like=True, frozen=True):
    t: _Number
    digest: _Digest
    next_offset: _Number
    ended: bool
    records: list[_OpenRecord] = []
    opened_at_ms: int = 0
    last_at_ms: int = 0


_decode_session: Final = msgspec.msgpack.Decoder(_Session).decode


class Counts(msgspec.Struct, array_like=True):
    """What became of the partition's records since its first.

    ``records`` = ``chunked`` + open + ``duplicates``, which are ``UNKNOWN`` until a replay is over
    that may judge them otherwise than they were: by another policy, or with less of the log.
    """

    records: int = 0
    chunked: int = 0
    dead_letters: int = 0
    ends: int = 0
    duplicates: int = 0

    def unaccounted(self, staged_count: int, open_count: int) -> int:
        """Return how many records are in no chunk, not open and no duplicates; 0, or it is a fault.

        Args:
            staged_count: Records read that ``records`` does not have yet.
            open_count: Records that sessions hold.
        """
        if self.duplicates == UNKNOWN:
            return 0
        return self.records + staged_count - self.chunked - self.duplicates - open_count

    def settle(self, open_count: int, seen: int, where: str) -> None:
        """Find that every record is accounted for, and how many were duplicates if unknown.

        Raises:
            StateError: One is not.
        """
        if self.duplicates == UNKNOWN:
            self.duplicates = max(self.records - self.chunked - open_count, 0)
        if self.unaccounted(0, open_count):
            message = (
                f"{where}: {self.records} records were read up to offset {seen}, but "
                f"{self.chunked} are in chunks, {open_count} open and {self.duplicates} "
                "duplicates. Nothing more is committed: run `processor verify`, and report this"
            )
            raise StateError(message)


class PartitionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Where a partition stands, as its last transaction left it.

    Attributes:
        low: Where a replay starts.
        log_time_ms: Largest timestamp before ``low``.
        seen: First offset never processed.
        partition_count: Partitions of the records topic.
        rule: Policy and token counter, by name.
        fingerprint: Offset and timestamp of the last record processed, to know the log again.
        counts: See ``Counts``.
        topic: The records topic; empty where an older version wrote the entry.
        meter: Dead letters among the last records.
    """

    low: int
    log_time_ms: int
    seen: int
    partition_count: int
    rule: dict[str, Any]
    fingerprint: tuple[int, int] | None
    counts: Counts
    topic: str = ""
    meter: DeadLetterMeter = DeadLetterMeter()


def encode_session(state: SessionState) -> bytes:
    """Return the entry of a session: its counters, and its open records if it has any."""
    # Not as _OpenRecord, which writes what is not there too.
    records = [
        (
            it.offset or 0,
            it.timestamp_ms,
            it.token_count,
            it.size_bytes,
            _CARRIED.index(it.carried),
            it.value,
            *([it.headers] if it.headers else ()),
        )
        for it in state.records
    ]
    return _version(is_first=not any(it.headers for it in state.records)) + msgspec.msgpack.encode(
        (
            state.t,
            state.digest,
            state.next_offset,
            state.ended,
            records,
            state.opened_at_ms,
            state.last_at_ms,
        )
    )


def encode_partition(entry: PartitionEntry) -> bytes:
    """Return the partition's own entry."""
    is_first = len(entry.rule) <= _FIRST_RULE_MEMBERS
    return _version(is_first=is_first) + msgspec.msgpack.encode(entry)


def decode_partition(
    entries: Mapping[bytes, bytes], where: str, remedy: str = REBUILD
) -> PartitionEntry | None:
    """Return the partition's own entry, ``None`` when the changelog has none.

    Args:
        entries: The changelog's latest entries by key.
        where: Topic and partition, for the error.
        remedy: What to do about a changelog that is damaged.

    Raises:
        ChangelogError: It can't be read.
    """
    value = entries.get(PARTITION_KEY)
    if value is None:
        return None
    return _decode(value, PartitionEntry, f"{where}, partition entry", remedy)


def decode_sessions(entries: Mapping[bytes, bytes], where: str) -> Iterator[SessionState]:
    """Yield the state of every session in the changelog.

    Raises:
        ChangelogError: An entry can't be read.
    """
    for key, value in entries.items():
        if key != PARTITION_KEY:
            at = f"{where}, session {key!r}"
            entry = _decode(value, _Session, at, REBUILD)
            try:
                yield _state(key.decode(), entry)
            except UnicodeDecodeError as error:
                raise _damaged(at, error, REBUILD) from error


def read_dormant(key: bytes, value: bytes) -> _Session | None:
    """Return a session's entry, or ``None`` if it has open records or can't be read."""
    try:
        key.decode()
        entry = _decode_session(value[1:])
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None
    return None if entry.records or value[:1] not in _READABLE else entry


def _state(session: str, entry: _Session) -> SessionState:
    records = tuple(
        Record(
            session,
            it.value,
            it.token_count,
            it.offset,
            it.timestamp_ms,
            it.size_bytes,
            _CARRIED[it.carried],
            it.headers,
        )
        for it in entry.records
    )
    return SessionState(
        session,
        entry.t,
        entry.digest,
        entry.next_offset,
        entry.ended,
        records,
        entry.opened_at_ms,
        entry.last_at_ms,
    )


def _version(*, is_first: bool) -> bytes:
    return _READABLE[0] if is_first else _READABLE[-1]


def _decode(value: bytes, kind: type[_Entry], where: str, remedy: str) -> _Entry:
    if value[:1] not in _READABLE:
        message = (
            f"{where}: version {value[:1].hex() or 'none'}, this reads up to {VERSION:02x}; run "
            f"the version of processor that wrote it, or {remedy}"
        )
        raise ChangelogError(message)
    try:
        return msgspec.msgpack.decode(value[1:], type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _damaged(where, error, remedy) from error


def _damaged(where: str, error: Exception, remedy: str) -> ChangelogError:
    return ChangelogError(f"{where}: {error}; the changelog is damaged: {remedy}")
