"""One session: records in, chunks out.

Theory of operation. A session is a counter ``t``, a digest, the next offset not yet in a chunk,
and at most one open chunk. Each record first closes the open chunk if a rule of ``flush.py``
says so, then joins or opens one; a record that must stand alone closes its own at once. Time
comes with each call and is never read: the same calls give the same chunks, so a replay of the
log rebuilds exactly the state that was lost.

A policy may forget sessions some time after their end. That too is decided by the log time of
what comes next, and not by when somebody tidied up: so it is the same in a replay.
"""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Final

from processor.core.chunks import Chunk, FlushReason, OpenChunk
from processor.core.digest import first_digest, next_digest
from processor.core.errors import RecordOrderError
from processor.core.flush import deadline_ms, is_over_budget, why_alone, why_flush, why_late
from processor.core.policy import NEVER_MS, ChunkPolicy
from processor.core.records import Record
from processor.core.session_state import SessionState

#: What the JSON around a chunk's records takes at most beside the session's name: braces,
#: policy, two digests, a topic of 249 characters and a counter's name of up to 500.
ENVELOPE_BYTES: Final = 2048
#: A character of the session's name takes at most ``\\u0000`` in JSON.
_ESCAPED_BYTES: Final = 6
_token_count: Final = attrgetter("token_count")
_size_bytes: Final = attrgetter("size_bytes")


class SessionAccumulator:
    """Holds a session's open records and closes chunks; knows no other session."""

    __slots__ = ("_policy", "digest", "ended", "ended_at_ms", "held", "next_offset", "session", "t")

    def __init__(self, state: SessionState, policy: ChunkPolicy) -> None:
        self._policy = policy
        self.session = state.session
        self.t = state.t
        self.digest = state.digest
        self.next_offset = state.next_offset
        self.ended = state.ended
        self.ended_at_ms = 0 if state.records else state.last_at_ms
        self.held: OpenChunk | None = _reopened(state) if state.records else None

    @property
    def deadline_ms(self) -> int:
        """Instant after which the open chunk closes by time; ``NEVER_MS`` for none."""
        return NEVER_MS if self.held is None else deadline_ms(self.held, self._policy)

    def push(self, record: Record, now_ms: int) -> tuple[Chunk, ...]:
        """Add one record and return the chunks this closes.

        A record that fits joins the open chunk; otherwise the open chunk closes first. A record
        above ``max_tokens`` becomes a chunk by itself, marked ``over_budget``; one above another
        cap stands alone too. Records are never split, dropped or reordered.

        Args:
            record: Next record of this session, in partition order, its tokens counted.
            now_ms: Its log time (Unix milliseconds), not below the previous call's.

        Returns:
            Zero to two chunks, oldest first, with consecutive ``t``.

        Raises:
            RecordOrderError: The offset isn't above the last one accepted.

        Source:
            Next-fit bin packing (Johnson, 1973).
        """
        offset = record.offset
        if offset is not None and offset < self.next_offset:
            raise self._out_of_order(offset)
        held = self.held
        policy = self._policy
        # Nearly every record fits, and asking the table of rules costs it 1 µs. This is
        # `why_flush(...) is None` in one expression; a law keeps the two equal.
        if (
            held is not None
            and held.token_count + record.token_count <= policy.flush_tokens
            and held.size_bytes + record.size_bytes <= policy.max_chunk_bytes
            and len(held.records) < policy.max_chunk_records
            and now_ms - held.last_at_ms <= policy.idle_ms
            and now_ms - held.opened_at_ms <= policy.max_age_ms
        ):
            self._join(held, record, now_ms)
            return ()
        closed: tuple[Chunk, ...] = ()
        if held is not None:
            closed = (self._close(why_flush(held, record, policy, now_ms)),)
        else:
            self._begin_anew_if_forgotten(now_ms)
        return closed + self._open(record, now_ms)

    def push_run(
        self, records: Sequence[Record], times_ms: Sequence[int]
    ) -> list[tuple[int, Chunk]]:
        """Add records in order and close chunks: ``push`` for each, but faster.

        What fits is found by bisection in running sums, so that Python works for each chunk and
        not for each record.

        Args:
            records: The next records of this session, each with an offset.
            times_ms: Their log times, not falling.

        Returns:
            The chunks, oldest first, each behind the offset of the record that closed it.

        Raises:
            RecordOrderError: The first offset isn't above the last one accepted.
        """
        if len(records) == 1:  # as most runs are where many sessions are open
            offset = records[0].offset or 0
            return [(offset, it) for it in self.push(records[0], times_ms[0])]
        token_sums = list(accumulate(map(_token_count, records), initial=0))
        size_sums = list(accumulate(map(_size_bytes, records), initial=0))
        chunks: list[tuple[int, Chunk]] = []
        start = 0
        while start < len(records):
            stop = self._fitting_until(start, token_sums, size_sums, times_ms)
            if stop <= start:
                offset = records[start].offset or 0
                chunks += [(offset, it) for it in self.push(records[start], times_ms[start])]
                start += 1
                continue
            held = self.held or OpenChunk()
            held.records += records[start:stop]
            held.token_count += token_sums[stop] - token_sums[start]
            held.size_bytes += size_sums[stop] - size_sums[start]
            held.last_at_ms = times_ms[stop - 1]
            self.next_offset = (records[stop - 1].offset or 0) + 1
            start = stop
        return chunks

    def tick(self, now_ms: int) -> tuple[Chunk, ...]:
        """Close the open chunk if its deadline is before ``now_ms``; marked ``clock``."""
        held = self.held
        if held is None or now_ms <= self.deadline_ms:
            return ()
        return (self._close(why_late(held, self._policy), clock=True),)

    def end(self, offset: int | None, now_ms: int) -> tuple[Chunk, ...]:
        """End the session: close the open chunk as final, or emit an empty final chunk.

        A second end with nothing between is ignored.

        Args:
            offset: Where the end stands in the log, if it comes from one.
            now_ms: Its log time; an open chunk whose deadline passed closes for that first.

        Returns:
            Zero to two chunks, the last of them final.

        Raises:
            RecordOrderError: The offset isn't above the last one accepted.
        """
        if offset is not None and offset < self.next_offset:
            raise self._out_of_order(offset)
        held = self.held
        closed: tuple[Chunk, ...] = ()
        if held is None:
            self._begin_anew_if_forgotten(now_ms)
        elif now_ms > self.deadline_ms:
            closed = (self._close(why_late(held, self._policy)),)
        if offset is not None:
            self.next_offset = offset + 1
        if self.held is None and self.ended:
            return closed
        return (*closed, self._close(FlushReason.END, final=True, ended_at_ms=now_ms))

    def finish(self) -> tuple[Chunk, ...]:
        """Close what is open because the source ended; the session itself may go on."""
        return () if self.held is None else (self._close(FlushReason.END),)

    def snapshot(self) -> SessionState:
        """Return the whole state, open records included."""
        held = self.held or OpenChunk()
        return SessionState(
            self.session,
            self.t,
            self.digest,
            self.next_offset,
            self.ended,
            tuple(held.records),
            held.opened_at_ms,
            self.ended_at_ms if self.held is None else held.last_at_ms,
        )

    def _begin_anew_if_forgotten(self, now_ms: int) -> None:
        """Be the next session of this name, if the last one ended long enough ago."""
        ended_at_ms = self.ended_at_ms
        if self.ended and ended_at_ms and now_ms - ended_at_ms > self._policy.forget_ms:
            self.t, self.digest = 0, first_digest(self.session)
            self.ended, self.ended_at_ms = False, 0

    def _fitting_until(
        self,
        start: int,
        token_sums: Sequence[int],
        size_sums: Sequence[int],
        times_ms: Sequence[int],
    ) -> int:
        """Return where the records from ``start`` on stop to fit, at most, by every rule.

        Times are judged by the last of them alone: a run longer than a deadline is for ``push``.
        """
        held, policy = self.held, self._policy
        if held is None:
            return start
        tokens = token_sums[start] + policy.flush_tokens - held.token_count
        size = size_sums[start] + policy.max_chunk_bytes - held.size_bytes
        stop = min(
            bisect_right(token_sums, tokens, start) - 1,
            bisect_right(size_sums, size, start) - 1,
            start + policy.max_chunk_records - len(held.records),
        )
        last_at_ms = times_ms[stop - 1]
        is_late = (
            last_at_ms - held.last_at_ms > policy.idle_ms
            or last_at_ms - held.opened_at_ms > policy.max_age_ms
        )
        return start if is_late else stop

    def _out_of_order(self, offset: int) -> RecordOrderError:
        message = (
            f"offset {offset} of session {self.session!r} is below {self.next_offset}, "
            "which is next; records must come in partition order"
        )
        return RecordOrderError(message)

    def _open(self, record: Record, now_ms: int) -> tuple[Chunk, ...]:
        held = self.held = OpenChunk(size_bytes=_envelope_bytes(self.session), opened_at_ms=now_ms)
        self._join(held, record, now_ms)
        why = why_alone(held, self._policy)
        return () if why is None else (self._close(why),)

    def _join(self, held: OpenChunk, record: Record, now_ms: int) -> None:
        held.records.append(record)
        held.token_count += record.token_count
        held.size_bytes += record.size_bytes
        held.last_at_ms = now_ms
        if record.offset is not None:
            self.next_offset = record.offset + 1

    def _close(
        self,
        why: FlushReason | None,
        *,
        final: bool = False,
        clock: bool = False,
        ended_at_ms: int = 0,
    ) -> Chunk:
        held, self.held = self.held or OpenChunk(), None
        if why is None:
            message = f"session {self.session!r}: no rule closes the chunk; the rules disagree"
            raise AssertionError(message)
        previous, self.digest = (
            self.digest,
            next_digest(self.digest, [record.value for record in held.records]),
        )
        self.t += 1
        self.ended, self.ended_at_ms = final, ended_at_ms
        return Chunk(
            self.session,
            self.t,
            tuple(held.records),
            held.token_count,
            is_over_budget(held, self._policy),
            why,
            final,
            clock,
            previous,
            self.digest,
            self.next_offset,
            ended_at_ms,
        )


def _reopened(state: SessionState) -> OpenChunk:
    return OpenChunk(
        list(state.records),
        sum(map(_token_count, state.records)),
        _envelope_bytes(state.session) + sum(map(_size_bytes, state.records)),
        state.opened_at_ms,
        state.last_at_ms,
    )


def _envelope_bytes(session: str) -> int:
    return ENVELOPE_BYTES + _ESCAPED_BYTES * len(session)
