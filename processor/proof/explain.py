"""Why a chunk is what it is: its records on a ruler of tokens, and what closed it.

What a rule asks of an open chunk is asked here of the same chunk, built anew by the core from the
records that it carries: so the numbers are those that decided. Times are the records' timestamps;
the log time that a worker goes by can be ahead of them where timestamps step back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Final, NamedTuple

from processor.core.accumulator import SessionAccumulator
from processor.core.chunks import FlushReason, OpenChunk
from processor.core.errors import ConfigError
from processor.core.policy import ChunkPolicy
from processor.core.records import Record
from processor.core.session_state import SessionState
from processor.counters import counter_named
from processor.counters.chars_over_four import CharsOverFour
from processor.proof.chunk_rule import counted_records, policy_of, records_in
from processor.proof.rules import Logged
from processor.proof.seen import Seen

_BY_TIME: Final = (FlushReason.IDLE, FlushReason.AGE)


class Mark(NamedTuple):
    """One record on the ruler.

    Attributes:
        offset: Its offset in the log.
        timestamp_ms: Its timestamp there, where the chunk tells it.
        token_count: Its tokens.
        running_tokens: Tokens of the chunk up to it, its own included.
        size_bytes: Its bytes.
        value: They themselves; ``None`` where they were too large to carry.
    """

    offset: int
    timestamp_ms: int | None
    token_count: int
    running_tokens: int
    size_bytes: int
    value: bytes | None


class Closer(StrEnum):
    """What it was that closed a chunk."""

    RECORD = "record"
    """The session's next record, which did not fit or came too late."""
    ITSELF = "itself"
    """Its only record, beside which no other may stand."""
    END = "end"
    """An end of session."""
    CLOCK = "clock"
    """The worker's clock, no record having come."""


@dataclass(frozen=True, slots=True)
class Came:
    """The message of a session that came behind a chunk.

    Attributes:
        record: The record, or where an end of session stands.
        is_end: It is an end of session.
    """

    record: Record
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class Closing:
    """What closed a chunk, in numbers.

    Attributes:
        reason: The rule.
        closer: What made it hold.
        came: The message that closed it; ``None`` where none did, or it can't be seen.
        unit: What the rule counts: ``tokens``, ``bytes``, ``records``, ``ms``; ``None`` for an end.
        limit: The most that the rule allows.
        reached: What it would have been with the message that came; ``None`` where that is not
            known.
    """

    reason: str
    closer: Closer
    came: Came | None = None
    unit: str | None = None
    limit: int | None = None
    reached: int | None = None

    @property
    def excess(self) -> int | None:
        """By how much it did not fit; what is not above 0 is no reason to close."""
        return None if self.limit is None or self.reached is None else self.reached - self.limit


def ruler(seen: Seen) -> list[Mark]:
    """Return a chunk's records with their running tokens, in order.

    Raises:
        StateError: A record is omitted without its size.
    """
    records = seen.chunk.records
    sums = accumulate(it.token_count for it in records)
    return [
        Mark(
            it.offset or 0,
            it.timestamp_ms,
            it.token_count,
            running,
            seen.omitted().size_bytes if value is None else len(value),
            value,
        )
        for it, running, value in zip(records, sums, seen.values, strict=True)
    ]


def is_closed_by_itself(seen: Seen) -> bool:
    """Tell whether the chunk's only record closed it: no other one could stand beside it."""
    chunk, policy = seen.chunk, policy_of(seen.chunk)
    if len(chunk.records) != 1 or chunk.final or chunk.flush in _BY_TIME:
        return False
    held = _held(seen, policy)
    return (
        chunk.token_count > policy.flush_tokens
        or held.size_bytes > policy.max_chunk_bytes
        or seen.values == [None]
    )


def closing(seen: Seen, came: Came | None) -> Closing:
    """Return what closed a chunk.

    Args:
        seen: The chunk.
        came: The session's next message behind it, where there is one to be seen.
    """
    chunk, policy = seen.chunk, policy_of(seen.chunk)
    if chunk.flush == FlushReason.END:
        return Closing(chunk.flush, Closer.END, came if came and came.is_end else None)
    held = _held(seen, policy)
    unit, limit = _limit(chunk.flush, chunk.max_tokens, policy)
    if chunk.clock:
        return Closing(chunk.flush, Closer.CLOCK, None, unit, limit)
    if is_closed_by_itself(seen):
        return Closing(chunk.flush, Closer.ITSELF, None, unit, limit, _measured(chunk.flush, held))
    closer = Closer.END if came is not None and came.is_end else Closer.RECORD
    reached = None if came is None else _with(came.record, chunk.flush, held)
    return Closing(chunk.flush, closer, came, unit, limit, reached)


def came_first(following: Seen | None) -> Came | None:
    """Return the first record of the chunk behind one: what came next, if nothing else did."""
    records = records_in(following) if following is not None else []
    return Came(records[0]) if records else None


def came_in_log(logged: Logged, seen: Seen) -> Came:
    """Return the session's next message behind a chunk, as the log has it.

    Its tokens are 0, for not known, where the chunk's counter is not here.
    """
    session, policy = seen.chunk.session, policy_of(seen.chunk)
    if logged.value is None:
        return Came(Record(session, b"", 0, logged.offset, logged.timestamp_ms), is_end=True)
    try:
        counter = counter_named(seen.chunk.token_counter)
    except ConfigError:
        (record,) = counted_records(session, [logged], policy, CharsOverFour())
        return Came(record._replace(token_count=0))
    (record,) = counted_records(session, [logged], policy, counter)
    return Came(record)


def _held(seen: Seen, policy: ChunkPolicy) -> OpenChunk:
    """Return the chunk as it was when it was still open."""
    records, chunk = records_in(seen), seen.chunk
    times = _times(records)
    first, last = (times[0], times[-1]) if times else (0, 0)
    state = SessionState(
        chunk.session,
        chunk.t - 1,
        b"",
        records=tuple(records),
        opened_at_ms=first,
        last_at_ms=last,
    )
    return SessionAccumulator(state, policy).held or OpenChunk()


def _times(records: Sequence[Record]) -> list[int]:
    """Return the records' log times, as far as their own timestamps tell."""
    return list(accumulate((it.timestamp_ms or 0 for it in records), max))


def _limit(flush: str, max_tokens: int, policy: ChunkPolicy) -> tuple[str | None, int | None]:
    limits: dict[str, tuple[str, int]] = {
        FlushReason.OVERSIZE: ("tokens", max_tokens),
        FlushReason.TOKENS: ("tokens", policy.flush_tokens),
        FlushReason.BYTES: ("bytes", policy.max_chunk_bytes),
        FlushReason.COUNT: ("records", policy.max_chunk_records),
        FlushReason.IDLE: ("ms", policy.idle_ms),
        FlushReason.AGE: ("ms", policy.max_age_ms),
    }
    return limits.get(flush, (None, None))


def _measured(flush: str, held: OpenChunk) -> int:
    return held.size_bytes if flush == FlushReason.BYTES else held.token_count


def _with(incoming: Record, flush: str, held: OpenChunk) -> int | None:
    """Return what a rule would have counted, had a record joined the chunk."""
    at_ms = incoming.timestamp_ms
    if flush == FlushReason.TOKENS:
        return held.token_count + incoming.token_count if incoming.token_count else None
    if flush == FlushReason.BYTES:
        return held.size_bytes + incoming.size_bytes if incoming.size_bytes else None
    if flush == FlushReason.COUNT:
        return len(held.records) + 1
    if at_ms is None:
        return None
    return at_ms - (held.last_at_ms if flush == FlushReason.IDLE else held.opened_at_ms)
