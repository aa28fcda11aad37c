"""All sessions of one partition: feed, next deadline, low-water offset.

Theory of operation. A session with open records has an accumulator; one without is asleep, and
packed (``asleep.py``). Which is due next ``deadlines.py`` knows. Beside them stands an
insertion-ordered map, so that this too is answered by a first element, in O(1):

- ``_uncovered``: sessions with records that are in neither a chunk nor a changelog entry, by the
  first such record. A session enters at *any* record it is not in for (after a checkpoint its
  next record is not its chunk's first) and leaves when its chunk closes or it is checkpointed;
  re-entry is always at the end, so the map stays sorted by offset. Its first element is the
  low-water mark, where a replay must start.

Log time is the largest timestamp of the partition so far; log-append times can step back after
a change of leader, and a replay from the low-water mark must see the maximum that the first
pass saw, so the mark carries the log time before it.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from processor.core.accumulator import SessionAccumulator
from processor.core.asleep import SessionsAsleep
from processor.core.chunks import Chunk
from processor.core.deadlines import Deadlines
from processor.core.dormant import DormantSessions
from processor.core.errors import RecordOrderError
from processor.core.policy import NEVER_MS, ChunkPolicy
from processor.core.records import Record, Run
from processor.core.session_state import SessionState


class LowWater(NamedTuple):
    """Where a replay starts: an offset, and the log time (Unix milliseconds) before it."""

    offset: int
    log_time_ms: int


class PartitionSessions:
    """The sessions of one partition; has no chunk rule of its own.

    Args:
        policy: The rule of all its sessions.
        states: Sessions to go on with, such as the changelog's.
        log_time_ms: Largest timestamp seen before the first record to come.
        dormant: More of them, with nothing open; taken over as it is.
    """

    def __init__(
        self,
        policy: ChunkPolicy,
        states: Iterable[SessionState] = (),
        log_time_ms: int = 0,
        dormant: DormantSessions | None = None,
    ) -> None:
        self._policy = policy
        self.log_time_ms = log_time_ms
        self.open_record_count = 0
        self._asleep = SessionsAsleep(policy, DormantSessions() if dormant is None else dormant)
        self._open: dict[str, SessionAccumulator] = {}
        self._uncovered: OrderedDict[str, LowWater] = OrderedDict()
        self._deadlines = Deadlines()
        for state in states:
            self.restore(state)

    def __len__(self) -> int:
        return len(self._asleep) + len(self._open)

    def __iter__(self) -> Iterator[str]:
        yield from self._open
        yield from self._asleep

    def push(self, record: Record) -> tuple[Chunk, ...]:
        """Add one record of the log and return the chunks that this closes.

        A record that its session has in a chunk or an entry already, as in a replay, only
        moves the log time.

        Args:
            record: Next record of the partition, with offset and timestamp.

        Returns:
            Zero to two chunks, oldest first.

        Raises:
            RecordOrderError: The record has no offset.
        """
        before_ms, session, offset = self.log_time_ms, record.session, record.offset
        self.pass_by(record.timestamp_ms)
        if offset is None:
            message = f"a record of session {session!r} has no offset; it comes from no log"
            raise RecordOrderError(message)
        held = self._open.get(session) or self._wake(session)
        if offset < held.next_offset:
            self._settle(held)
            return ()
        chunks = held.push(record, self.log_time_ms)
        self.open_record_count += 1
        if chunks:
            self._count_closed(chunks)
        if held.held is None:
            self._settle(held)
            return chunks
        if session not in self._uncovered:
            self._uncovered[session] = LowWater(offset, before_ms)
        self._deadlines.touch(session)
        return chunks

    def feed(self, runs: Iterable[Run], log_time_ms: int) -> list[Chunk]:
        """Add a stretch of the log, grouped by session: ``push`` for each record, but faster.

        Args:
            runs: Of each session its records of the stretch.
            log_time_ms: Log time at the end of the stretch.

        Returns:
            The chunks that this closes, in the order in which the log closes them.
        """
        chunks: list[tuple[int, Chunk]] = []
        entered, opened, touched = [], [], []
        for whole in runs:
            session = whole.session
            held = self._open.get(session) or self._wake(session)
            run = whole.above(held.next_offset)
            records = run.records
            closed = held.push_run(records, run.times_ms)
            self.open_record_count += len(records)
            if closed:
                self._count_closed(chunk for _, chunk in closed)
                chunks += closed
            open_chunk = held.held
            if open_chunk is None:
                self._settle(held)
                continue
            if not records:
                continue
            if session not in self._uncovered:
                # If a chunk closed, what is open came with this run.
                index = -len(open_chunk.records) if closed else 0
                mark = LowWater(records[index].offset or 0, run.before_ms[index])
                entered.append((mark, session))
            if session not in self._deadlines:
                opened.append((open_chunk.records[0].offset or 0, session))
            touched.append((records[-1].offset or 0, session))
        # All of them stand after whatever is there; among each other, by the log and not by run.
        self._uncovered.update((session, mark) for mark, session in sorted(entered))
        in_order = (map(itemgetter(1), sorted(it)) for it in (opened, touched))
        self._deadlines.touch_all(*in_order)
        self.log_time_ms = log_time_ms
        chunks.sort(key=itemgetter(0))
        return [chunk for _, chunk in chunks]

    def end(self, session: str, offset: int, timestamp_ms: int | None) -> tuple[Chunk, ...]:
        """End ``session`` and return the chunks this closes, the last one final."""
        self.pass_by(timestamp_ms)
        held = self._open.get(session) or self._wake(session)
        chunks = () if offset < held.next_offset else held.end(offset, self.log_time_ms)
        self._count_closed(chunks)
        self._settle(held)
        return chunks

    def pass_by(self, timestamp_ms: int | None) -> None:
        """Move the log time for a record of the partition, whosesoever it is."""
        if timestamp_ms is not None and timestamp_ms > self.log_time_ms:
            self.log_time_ms = timestamp_ms

    def close_due(self, now_ms: int) -> Iterator[Chunk]:
        """Close, by the clock, every chunk whose deadline is before ``now_ms``, as it is taken.

        Whoever has taken enough may leave the rest: it is due until it is closed.
        """
        self._sort()
        for due_next in (self._deadlines.next_idle, self._deadlines.next_aged):
            while (session := due_next()) is not None:
                held = self._open[session]
                closed = held.tick(now_ms)
                if not closed:
                    break
                self._count_closed(closed)
                self._settle(held)
                yield from closed

    def finish(self) -> list[Chunk]:
        """Close every open chunk because the source ended, in order of their first records."""
        self._sort()
        chunks: list[Chunk] = []
        for session in list(self._deadlines):
            held = self._open[session]
            closed = held.finish()
            self._count_closed(closed)
            self._settle(held)
            chunks += closed
        return chunks

    @property
    def open_session_count(self) -> int:
        """Sessions with an open chunk."""
        return len(self._open)

    @property
    def oldest_opened_at_ms(self) -> int | None:
        """Log time of the first record of the oldest open chunk; ``None`` when none is open."""
        self._sort()
        session = self._deadlines.next_aged()
        held = None if session is None else self._open[session].held
        return None if held is None else held.opened_at_ms

    @property
    def dormant_bytes(self) -> int:
        """Memory of the sessions with nothing open."""
        return self._asleep.size_bytes

    def open_token_counts(self) -> Iterator[int]:
        """Yield the tokens of each open chunk."""
        return (it.held.token_count for it in self._open.values() if it.held is not None)

    @property
    def next_deadline_ms(self) -> int:
        """Deadline of the session that is due next; ``NEVER_MS`` when none is."""
        self._sort()
        first = (self._deadlines.next_idle(), self._deadlines.next_aged())
        return min((self._open[it].deadline_ms for it in first if it is not None), default=NEVER_MS)

    def low_water(self, next_offset: int) -> LowWater:
        """Return where a replay must start, given the offset that is read next."""
        if self._uncovered:
            return next(iter(self._uncovered.values()))
        return LowWater(next_offset, self.log_time_ms)

    def checkpoint(self) -> SessionState | None:
        """Cover the session with the oldest uncovered record.

        Returns:
            Its state for the changelog, open records included; ``None`` when nothing is
            uncovered.
        """
        if not self._uncovered:
            return None
        session, _ = self._uncovered.popitem(last=False)
        return self._open[session].snapshot()

    def state(self, session: str) -> SessionState | None:
        """Return the state of ``session``, or ``None`` if no record has come for it."""
        held = self._open.get(session)
        if held is not None:
            return held.snapshot()
        return self._asleep.get(session)

    def restore(self, state: SessionState) -> None:
        """Take ``state`` for its session, as a changelog entry gives it."""
        self.forget(state.session)
        if not state.records:
            self._asleep.restore(state)
            return
        self._open[state.session] = SessionAccumulator(state, self._policy)
        self.open_record_count += len(state.records)
        self._deadlines.unsort(state.last_at_ms)

    def forget(self, session: str) -> None:
        """Drop ``session``; if it comes again it starts at ``t`` = 1."""
        held = self._open.pop(session, None)
        if held is not None and held.held is not None:
            self.open_record_count -= len(held.held.records)
        self._asleep.pop(session)
        self._leave(session)

    def drop_forgotten(self) -> list[str]:
        """Drop the ended sessions that are forgotten by now, and return them."""
        return self._asleep.drop_forgotten(self.log_time_ms, lambda: self.oldest_opened_at_ms)

    def _wake(self, session: str) -> SessionAccumulator:
        state = self._asleep.pop(session) or SessionState.new(session)
        held = self._open[session] = SessionAccumulator(state, self._policy)
        return held

    def _settle(self, held: SessionAccumulator) -> None:
        """Put a session without open records to sleep."""
        if held.held is None:
            del self._open[held.session]
            self._asleep.put(held.snapshot())
            self._leave(held.session)

    def _count_closed(self, chunks: Iterable[Chunk]) -> None:
        for chunk in chunks:
            self.open_record_count -= len(chunk.records)
            self._leave(chunk.session)

    def _leave(self, session: str) -> None:
        self._uncovered.pop(session, None)
        self._deadlines.leave(session)

    def _sort(self) -> None:
        self._deadlines.sort(self._open, self.log_time_ms)
