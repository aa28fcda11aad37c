"""What another budget, counter or time would have made of the same records, as a diff.

Theory of operation. Chunks come in the order of their topic. The records of each go, one by one,
through a second accumulator of their session, which cuts by the other rule; what of it nobody asks
to be other is as the chunk itself names it. Chunks of either side are kept as spans (where each
begins and ends, and its sums), and both lists are compared from the front: a boundary that stands
on both sides is kept, the one that comes first stands on its side alone.

A cut by time, the clock's too, is taken as given unless another time is asked for: the accumulator
then knows no time and closes where the chunk closed. Else times are computed anew from the records'
timestamps, and what the clock did is left aside; an end of session, whose time no chunk tells,
comes right behind the last record.

In memory is what the second accumulators hold open, without the records' bytes.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from processor.core.accumulator import SessionAccumulator
from processor.core.chunks import Chunk, FlushReason
from processor.core.flush import why_flush
from processor.core.policy import ChunkPolicy, OrIdle, Tokens
from processor.core.records import Record
from processor.core.session_state import SessionState
from processor.counters import TokenCounter, count_tokens, counter_named
from processor.proof.chunk_rule import policy_of, records_in
from processor.proof.diff import Change, Diff, Span
from processor.proof.seen import Seen

_BY_TIME: Final = (FlushReason.IDLE, FlushReason.AGE)


@dataclass(frozen=True, slots=True)
class Cut:
    """A chunk as it was cut: its records, tokens counted, and the rule that cut it."""

    session: str
    t: int
    records: Sequence[Record]
    policy: ChunkPolicy
    counter: str
    flush: str
    final: bool

    @classmethod
    def of_chunk(cls, chunk: Chunk, policy: ChunkPolicy, counter: str) -> "Cut":
        """Return a chunk of the core."""
        return cls(chunk.session, chunk.t, chunk.records, policy, counter, chunk.flush, chunk.final)

    @classmethod
    def of_seen(cls, seen: Seen) -> "Cut":
        """Return a chunk of the chunks topic."""
        chunk, records = seen.chunk, records_in(seen)
        of_rule = (policy_of(chunk), chunk.token_counter)
        return cls(chunk.session, chunk.t, records, *of_rule, chunk.flush, chunk.final)


@dataclass(frozen=True, slots=True)
class Other:
    """What is asked for instead; ``None`` is as each chunk has it."""

    max_tokens: int | None = None
    counter: TokenCounter | None = None
    idle_s: float | None = None
    max_age_s: float | None = None

    @property
    def is_by_time(self) -> bool:
        """Whether cuts by time are computed anew."""
        return self.idle_s is not None or self.max_age_s is not None

    def policy(self, given: ChunkPolicy) -> ChunkPolicy:
        """Return a chunk's policy with what is asked for.

        Raises:
            ConfigError: There can't be such a policy.
        """
        tokens = given.flush_tokens if self.max_tokens is None else self.max_tokens
        idle_s = (given.idle_s if self.idle_s is None else self.idle_s) if self.is_by_time else 0
        age_s = given.max_age_s if self.max_age_s is None else self.max_age_s
        return replace(
            given,
            max_tokens=given.max_tokens if self.max_tokens is None else self.max_tokens,
            flush=OrIdle(idle_s) if idle_s else Tokens(tokens),
            max_age_s=age_s if self.is_by_time else 0,
            forget_ended_after_s=0,  # where a session began anew, its chunks tell
        )


class _Session:
    """A session's second accumulator, and the spans that wait for the other side.

    Attributes:
        last: Its last record.
        is_alone: The chunk before has one record, which may have closed it.
        flush: Why that chunk closed.
        is_ended: It closed with the session's end.
        old: Its chunks as they are, as far as they are not compared.
        new: Its chunks as they would be.
    """

    __slots__ = (
        "_held",
        "_log_time_ms",
        "_policy",
        "flush",
        "is_alone",
        "is_ended",
        "last",
        "new",
        "old",
    )

    def __init__(self, cut: Cut, policy: ChunkPolicy) -> None:
        self._policy = policy
        self._held = SessionAccumulator(SessionState(cut.session, cut.t - 1, b""), policy)
        self._log_time_ms = 0
        self.is_alone = self.is_ended = False
        self.flush = ""
        self.last: Record | None = None
        self.old: deque[Span] = deque()
        self.new: deque[Span] = deque()

    def push(self, record: Record, policy: ChunkPolicy) -> None:
        """Add a record; ``policy`` cuts what it opens, but not what is open already."""
        self._log_time_ms = max(self._log_time_ms, record.timestamp_ms or 0)
        if policy is not self._policy:
            held = self._held.held
            if held is not None:
                why = why_flush(held, record, self._policy, self._log_time_ms)
                if why is not None:
                    self.close(why)
            if self._held.held is None:
                self._policy = policy
                self._held = SessionAccumulator(self._held.snapshot(), policy)
        self._keep(self._held.push(record, self._log_time_ms))
        self.last = record

    def close(self, why: FlushReason) -> None:
        """Close what is open, if anything is."""
        self._keep(replace(it, flush=why) for it in self._held.finish())

    def end(self) -> None:
        """End the session."""
        self._keep(self._held.end(None, self._log_time_ms))

    def pause_ms_before(self, record: Record) -> int:
        """Return the time between the last record and this, as their timestamps tell."""
        if self.last is None or self.last.timestamp_ms is None or record.timestamp_ms is None:
            return 0
        return record.timestamp_ms - self.last.timestamp_ms

    def _keep(self, chunks: Iterable[Chunk]) -> None:
        budget = self._policy.max_tokens
        self.new += [Span.of(it.t, it.records, it.flush, budget, self.last) for it in chunks]


class Rechunking:
    """Cuts the chunks of one partition after the other anew.

    Args:
        other: The other rule.

    Attributes:
        diff: The sums so far.
    """

    def __init__(self, other: Other) -> None:
        self._other = other
        self._sessions: dict[str, _Session] = {}
        self._policies: dict[ChunkPolicy, ChunkPolicy] = {}
        self.diff = Diff()

    def take(self, cut: Cut) -> Iterator[Change]:
        """Take the next chunk, and yield what is decided by now, each session's in order.

        Raises:
            ConfigError: The other rule can't be, or a counter is not here.
        """
        policy = self._policies.get(cut.policy)
        if policy is None:
            policy = self._policies[cut.policy] = self._other.policy(cut.policy)
        session = self._sessions.get(cut.session)
        if session is not None and session.is_ended and cut.t == 1:
            yield from self._rest(cut.session, session)
            session = None
        if session is None:
            session = self._sessions[cut.session] = _Session(cut, policy)
        budget = cut.policy.max_tokens
        session.old.append(Span.of(cut.t, cut.records, cut.flush, budget, session.last))
        if self._is_paused(session, cut, policy):
            session.close(FlushReason.IDLE)
        for record in self._counted(cut, policy):
            session.push(record, policy)
        if cut.final:
            session.end()
        elif not self._other.is_by_time and cut.flush in _BY_TIME:
            session.close(FlushReason(cut.flush))
        session.is_alone, session.flush = len(cut.records) == 1, cut.flush
        session.is_ended = cut.final
        yield from self._compared(cut.session, session)

    def finish(self) -> Iterator[Change]:
        """End the partition: close what is open, and yield what is left."""
        for name, session in self._sessions.items():
            session.close(FlushReason.END)
            yield from self._rest(name, session)
        self._sessions.clear()

    def _rest(self, name: str, session: _Session) -> Iterator[Change]:
        """Yield what is left of a session of which nothing more comes."""
        yield from self._compared(name, session)
        while session.old:
            yield self._removed(name, session)
        while session.new:
            yield self._added(name, session)

    def _is_paused(self, session: _Session, cut: Cut, policy: ChunkPolicy) -> bool:
        """Tell whether a pause before a chunk closes what is open, which no time would tell."""
        if self._other.is_by_time:
            # An end has no time in a chunk, but it came too late for the chunk before it.
            is_late = not cut.records and session.flush == FlushReason.IDLE
            return is_late and policy.idle_ms <= cut.policy.idle_ms
        # A record that closed its chunk itself hides the pause behind it.
        is_hidden = bool(cut.records) and session.is_alone
        return is_hidden and session.pause_ms_before(cut.records[0]) > cut.policy.idle_ms

    def _counted(self, cut: Cut, policy: ChunkPolicy) -> Iterator[Record]:
        """Yield a chunk's records without their bytes, counted for the other rule."""
        counter, most = self._other.counter, cut.policy.max_tokens
        for record in cut.records:
            tokens = record.token_count
            # One above its budget was perhaps not counted, but bounded by its length.
            if counter is not None or (tokens > most and policy.max_tokens > most):
                if record.value:
                    text = record.value.decode("utf-8", "replace")
                    by = counter or counter_named(cut.counter)
                    (tokens,) = count_tokens(by, [text], policy.max_tokens)
                elif record.size_bytes > cut.policy.max_chunk_bytes:
                    self.diff.as_given_count += 1
            yield record._replace(value=b"", token_count=tokens)

    def _compared(self, name: str, session: _Session) -> Iterator[Change]:
        """Compare both sides as far as both are known."""
        old, new = session.old, session.new
        while old and new:
            one, other = old[0], new[0]
            if one.end < other.end:
                yield self._removed(name, session)
            elif other.end < one.end:
                yield self._added(name, session)
            else:
                self.diff.kept_count += 1
                self.diff.old.take(old.popleft())
                self.diff.new.take(new.popleft())
                if one.first_offset == other.first_offset:
                    self.diff.unchanged_count += 1
                    continue
                yield Change(name, is_added=False, span=one)
                yield Change(name, is_added=True, span=other)

    def _removed(self, name: str, session: _Session) -> Change:
        span = session.old.popleft()
        self.diff.removed_count += 1
        self.diff.old.take(span)
        return Change(name, is_added=False, span=span)

    def _added(self, name: str, session: _Session) -> Change:
        span = session.new.popleft()
        self.diff.added_count += 1
        self.diff.new.take(span)
        return Change(name, is_added=True, span=span)
