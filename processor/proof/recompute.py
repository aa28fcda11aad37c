"""Every chunk once more, from the log: the worker's own core and encoder must give its bytes.

Theory of operation. The other proofs share no code with the worker; this one has to, since it
proves that what is out is a function of the log. A session's next chunk depends on the one before
it, on the session's messages behind that one with their log times, and on policy and counter,
which the chunk itself carries: so a policy may change from any chunk on, as in the worker, whose
restart cuts the open records anew. Each chunk is therefore computed by itself, from the state that
its predecessor left. Where one comes out otherwise, it is told and taken as given, so that those
behind it are judged by themselves.

The message that closed a chunk is often not read yet when the chunk comes; the chunk then waits
for its session's next message. So all that is in memory is what was open in the worker, and mostly
one chunk a session. What the log can't tell is taken as given: that the clock closed a chunk after
its last record, that the chunks topic refused a record, and, where the setting that forgets ended
sessions has changed, which of them begin anew (``ends.py``).
"""

from dataclasses import replace
from hashlib import sha256
from typing import Final

import msgspec

from processor.core.accumulator import SessionAccumulator
from processor.core.chunks import Chunk
from processor.core.errors import ConfigError
from processor.core.policy import NEVER_MS
from processor.core.session_state import SessionState
from processor.counters import counter_named, has_counter
from processor.headers import TRACE_CONTEXT
from processor.proof.backlog import Backlog
from processor.proof.chain import check_digest
from processor.proof.chunk_rule import Rule, rule_of
from processor.proof.message import Message
from processor.proof.report import FaultKind
from processor.proof.rules import Logged
from processor.proof.seen import Scope, Seen
from processor.wire import chunk_headers

_SHOWN: Final = 60
_ARRIVAL: Final = (
    "the records have their producers' timestamps: a chunk that a wrong clock of theirs would have "
    "held open was cut by its arrival, which is not in the log, and is recomputed otherwise"
)
_UNTOLD: Final = (
    "unless the session, which had ended, was under a policy with another forget_ended_after_s "
    "meanwhile, of which no chunk tells"
)
_Fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Offset(msgspec.Struct):
    offset: int | None


class Recomputation:
    """Computes the chunks of one partition again and compares them to the byte.

    Args:
        scope: The partition; chunks that come out otherwise are reported there.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        scope.is_recomputed = True
        self._sessions: dict[bytes, Backlog] = {}
        self._rules: dict[tuple[object, ...], Rule | None] = {}
        self._is_past_chunks = False

    def take(self, key: bytes, logged: Logged) -> None:
        """Take the log's next message of a session."""
        session = self._sessions.get(key) or self._session(key)
        is_needed = session.due or not self._is_past_chunks
        if not is_needed or logged.offset < session.state.next_offset:
            return
        session.queue.append(logged)
        if session.due:
            self._settle(session)

    def take_chunk(self, seen: Seen) -> None:
        """Take the next chunk, the log being read as far as its last record."""
        session = self._session(seen.chunk.session.encode())
        session.due.append(seen)
        self._settle(session)

    def end_chunks(self) -> None:
        """Forget what is in no chunk: it is open."""
        self._is_past_chunks = True
        for session in self._sessions.values():
            if not session.due:
                session.queue.clear()

    def finish(self) -> None:
        """Judge the chunks that still wait, once the log is read."""
        if not self._scope.is_by_time and _ARRIVAL not in self._scope.report.warnings:
            self._scope.report.warnings.append(_ARRIVAL)
        for session in self._sessions.values():
            while session.due:
                self._judge(session, session.due.popleft())

    def _session(self, key: bytes) -> Backlog:
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = Backlog(key.decode())
        return session

    def _settle(self, session: Backlog) -> None:
        """Judge the session's waiting chunks as far as the messages that closed them are here."""
        while session.due:
            seen = session.due[0]
            self._begin(session, seen)
            if not seen.chunk.records:
                self._leave_ignored(session, seen)
            records = seen.chunk.records
            is_closed = seen.chunk.clock or session.has_behind(seen)
            # A record that stands alone closes its chunk itself: there is no need to wait, but
            # it may as well be another one, before which a rule closes.
            if not is_closed and not (len(records) == 1 and self._closed(session, seen)):
                return
            session.due.popleft()
            self._judge(session, seen)

    def _begin(self, session: Backlog, seen: Seen) -> None:
        """Begin at the first chunk that retention has left, taking its predecessor as given."""
        chunk, state = seen.chunk, session.state
        if state.t or chunk.t <= 1 or not self._scope.starts.chunks:
            return
        first = chunk.records[0].offset or 0 if chunk.records else state.next_offset
        digest = bytes.fromhex(chunk.previous_digest)
        session.go_on_from(SessionState(chunk.session, chunk.t - 1, digest, first))
        while not chunk.records and session.queue and session.queue[0].value is not None:
            del session.queue[0]

    def _leave_ignored(self, session: Backlog, seen: Seen) -> None:
        """Pass by what stands before the end that closed an empty chunk, as far as it is read."""
        forget_ms = round(seen.chunk.policy.forget_ended_after_s * 1000) or NEVER_MS
        # Where the chunk alone tells, it may be for any end: the first.
        least_ms = -1 if self._is_taken_as_given(session, seen) else forget_ms
        session.leave_ignored(self._scope.window, least_ms)

    def _is_taken_as_given(self, session: Backlog, seen: Seen) -> bool:
        """Tell whether a chunk alone says if the session, which ended, begins anew."""
        chunk = seen.chunk
        is_untold = chunk.t == 1 and not chunk.policy.forget_ended_after_s
        return session.state.ended and (is_untold or self._scope.is_forgetting_changed)

    def _judge(self, session: Backlog, seen: Seen) -> None:
        """Compute a chunk again, tell what differs, and stand behind it."""
        rule = None if self._is_deleted(session, seen) else self._rule(seen)
        chunk = None if rule is None else self._closed(session, seen)
        if rule is None:
            self._scope.report.not_recomputed_count += 1
        else:
            self._scope.report.recomputed_count += 1
            if self._is_equal(session, seen, rule, chunk) and chunk is not None:
                session.go_on_from(SessionState.after(chunk))
                return
        # What came out equal has the digest of the log's bytes, too.
        if seen.is_digest_due:
            check_digest(self._scope, seen, [it for it in seen.values if it is not None])
        session.go_on_from(session.state_after(seen))

    def _is_equal(self, session: Backlog, seen: Seen, rule: Rule, chunk: Chunk | None) -> bool:
        """Compare a chunk to the one that was computed, and tell in what they differ."""
        if chunk is None:
            self._blame(seen, "nothing in the log closes a chunk here")
            return False
        encode = rule.encoder.encode
        if len(chunk.records) == 1 and seen.values == [None]:
            encode = rule.encoder.encode_omitted
        value = encode(chunk)
        what = _difference(seen.message, chunk, value)
        if what is None:
            return True
        if session.state.ended and chunk.t != seen.chunk.t:
            what = f"{what}; {_UNTOLD}"
        self._blame(seen, what, value)
        return False

    def _closed(self, session: Backlog, seen: Seen) -> Chunk | None:
        """Return the chunk that closes next by the rule of ``seen``, as far as the log is read."""
        rule = self._rule(seen)
        if rule is None:
            return None
        chunk, needed = seen.chunk, session.needed_for(seen, self._scope.window)
        state = session.state
        if self._is_taken_as_given(session, seen):
            state = state.anew() if chunk.t == 1 else replace(state, last_at_ms=0)
            while needed and chunk.records and needed[0].value is None:
                needed.pop(0)
        held = SessionAccumulator(state, rule.policy)
        records, times_ms = rule.records_of(seen, needed), [it.log_time_ms for it in needed]
        start = 0
        for stop in [*(at for at, it in enumerate(needed) if it.value is None), len(needed)]:
            run = slice(start, stop)
            closed = [it for _, it in held.push_run(records[run], times_ms[run])]
            if not closed and stop < len(needed):
                closed += held.end(needed[stop].offset, times_ms[stop])
            if closed:
                return closed[0]
            start = stop + 1
        if chunk.clock and held.deadline_ms < NEVER_MS:
            return held.tick(NEVER_MS)[0]
        return None

    def _is_deleted(self, session: Backlog, seen: Seen) -> bool:
        """Tell whether retention has deleted what the chunk comes from."""
        start, records, queue = self._scope.starts.records, seen.chunk.records, session.queue
        if records:
            # Which of its records are repeated is known from the offsets before them.
            before = seen.chunk.policy.deduplicate_records if start else 0
            return (records[0].offset or 0) - before < start
        return session.state.next_offset < start and not (queue and queue[0].value is None)

    def _rule(self, seen: Seen) -> Rule | None:
        """Return the rule of a chunk, ``None`` where it can't be applied here.

        Raises:
            ConfigError: Its counter needs what is not here.
        """
        chunk = seen.chunk
        key = (chunk.token_counter, chunk.max_tokens, chunk.policy)
        if key not in self._rules:
            if has_counter(chunk.token_counter):
                counter_named(chunk.token_counter)  # what it lacks is for a person to install
            try:
                self._rules[key] = rule_of(chunk, self._scope)
            except ConfigError as error:
                self._rules[key] = None
                self._scope.report.warnings.append(f"chunks can't be recomputed: {error}")
        return self._rules[key]

    def _blame(self, seen: Seen, what: str, value: bytes | None = None) -> None:
        expected = found = None
        if value is not None:
            expected, found = (sha256(it).hexdigest() for it in (value, seen.message.value or b""))
        self._scope.blame_chunk(FaultKind.DIFFERENT, seen, what, expected, found)


def _difference(message: Message, chunk: Chunk, value: bytes) -> str | None:
    """Return in what a message is not the chunk that was computed, or ``None``."""
    found = message.value or b""
    if found != value:
        there, again = _Fields.decode(found), _Fields.decode(value)
        names = [name for name in {**there, **again} if there.get(name) != again.get(name)]
        told = [f"{it} {_shown(there, it)}, recomputed {_shown(again, it)}" for it in names]
        return "; ".join(told) or "the same fields, written otherwise"
    key = chunk.session.encode()
    if message.key != key:
        return f"key {message.key!r}, recomputed {key!r}"
    headers = chunk_headers(chunk)
    found_headers = [it for it in message.headers if it[0] not in TRACE_CONTEXT]
    if found_headers != headers:
        return f"headers {found_headers}, recomputed {headers}"
    return None


def _shown(fields: dict[str, msgspec.Raw], name: str) -> str:
    if name not in fields:
        return "nothing"
    text = bytes(fields[name]).decode("utf-8", "replace")
    if name == "records":
        offsets = [it.offset for it in msgspec.json.decode(text, type=list[_Offset])]
        return f"{len(offsets)} at offsets {offsets[0]} to {offsets[-1]}" if offsets else "none"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
