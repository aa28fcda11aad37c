"""One session: its chunks take its records off the front of its queue, in order, to the byte."""

from hashlib import sha256
from typing import Final

from processor.core.errors import StateError
from processor.proof.chain import ChainProof
from processor.proof.ends import Ends
from processor.proof.repeats import left_out
from processor.proof.report import Fault, FaultKind
from processor.proof.rules import NEVER_MS, Logged, faults_within
from processor.proof.seen import Scope, Seen
from processor.wire import WireRecord

_NONE: Final = -1


class SessionProof:
    """Where a session's chain stands, and what of it is in no chunk yet.

    Args:
        name: The session.
        scope: Its partition.
    """

    __slots__ = (
        "_chain",
        "_ends",
        "_first_open",
        "_last",
        "_open_tokens",
        "_queue",
        "_scope",
        "_skipped",
        "name",
        "open_count",
    )

    def __init__(self, name: str, scope: Scope) -> None:
        self.name = name
        self._scope = scope
        self._chain = ChainProof(name, scope)
        self._last = _NONE
        self._queue: list[Logged] = []
        # Offsets that a chunk passed over, with its t, and why it may have.
        self._skipped: dict[int, tuple[int, str]] | None = None
        self._ends = Ends(scope)
        self._first_open = _NONE
        self._open_tokens = 0
        self.open_count = 0

    def take_record(self, logged: Logged) -> None:
        """Take the session's next record of the log."""
        self._queue.append(logged)
        # One that is left out stands between nothing.
        if self._ends.awaited_count and not logged.repeats_within(self._scope.window):
            self._blame_untrue_end(logged.offset)

    def take_end(self, logged: Logged) -> None:
        """Take an end of session."""
        # What stands before it is open, or repeats a record that some chunk may still be of.
        is_next = self._ends.awaited_count or not self._queue
        if is_next and self._ends.is_ignored(logged.log_time_ms):
            self._ends.ignore()
        elif not self._ends.meets(logged.log_time_ms):
            self._queue.append(logged)

    def pass_record(self, logged: Logged) -> None:
        """Take a record behind the last chunk: it is open, if it may be."""
        if logged.repeats_within(self._scope.window):
            self._scope.report.duplicate_count += 1
            return
        offset = logged.offset
        if self._ends.awaited_count:
            self._blame_untrue_end(offset)
        self._ends.go_on()
        tokens = self._tokens_due(offset, logged.value or b"")
        limit = self._scope.flush_tokens or tokens
        if self._open_tokens + tokens > limit:
            self._blame_overdue()
        if not self.open_count:
            self._first_open = offset
        self.open_count += 1
        self._open_tokens += tokens
        if tokens > limit:
            self._blame_overdue()

    def pass_end(self, logged: Logged) -> None:
        """Take an end of session behind the last chunk."""
        ends, at_ms = self._ends, logged.log_time_ms
        if not ends.is_ignored(at_ms) and not ends.meets(at_ms):
            ends.take(at_ms)
            self._settle_end(logged.offset)

    def take_chunk(self, seen: Seen) -> None:
        """Judge the session's next chunk, the log being read as far as its last record."""
        for kind, what in faults_within(seen.chunk, seen.size_bytes):
            self._scope.blame_chunk(kind, seen, what)
        if self._is_chunk_gone() and seen.chunk.t > 1:
            self._begin_at(seen)
        if self._scope.window:
            self._leave_repeated(seen)
        if self._ends.is_ended:
            self._leave_ignored(seen)
            self._begin_anew_if_forgotten(seen)
        logged = self._take_front(seen)
        values = self._match_each(seen) if logged is None else seen.values
        self._chain.take(seen, values, logged or ())
        if seen.chunk.records:
            self._ends.go_on()
        if seen.chunk.final:
            self._take_final(seen)

    def close(self) -> None:
        """Judge what no chunk took, once there are no more chunks; the queue is given up."""
        if self._skipped:
            offset, (t, why) = next(iter(self._skipped.items()))
            what = f"passed over by the chunk with this t{why}"
            self._blame_record(FaultKind.MISSING, offset, what, t, len(self._skipped))
        queue, self._queue = self._queue, []
        for logged in queue:
            passing = self.pass_end if logged.value is None else self.pass_record
            passing(logged)

    def finish(self) -> None:
        """Judge an end that a final chunk told of and the log, now read, has not."""
        if self._ends.awaited_count:
            self._blame_untrue_end(self._last)

    def _leave_repeated(self, seen: Seen) -> None:
        """Take the records off the queue that the chunk left out, and judge those it took."""
        gone = left_out(self._queue, seen, self._scope.window)
        self._scope.report.duplicate_count += len(gone)
        if gone:
            offsets = {it.offset for it in gone}
            self._queue = [it for it in self._queue if it.offset not in offsets]
        chunked = {it.offset for it in seen.chunk.records}
        for logged in self._queue:
            is_certain = (logged.repeats or 0) >= self._scope.starts.records
            size = seen.chunk.policy.deduplicate_records
            if is_certain and logged.repeats_within(size) and logged.offset in chunked:
                what = f"repeats the record-id of offset {logged.repeats}"
                self._blame(FaultKind.REPEATED, seen, logged.offset, what)

    def _take_front(self, seen: Seen) -> list[Logged] | None:
        """Take the chunk's records off the queue if they are its front, exactly."""
        values = seen.values
        front = self._queue[: len(values)]
        # In columns, not record by record: of what is compared here, nearly all is equal.
        if [it.value for it in front] != values or [it.offset for it in front] != seen.offsets:
            return None
        times_ms = [it.timestamp_ms for it in seen.chunk.records]
        if None in values or [it.timestamp_ms for it in front] != times_ms:
            return None
        if front:
            del self._queue[: len(front)]
            self._last = front[-1].offset
            self._scope.report.chunked_count += len(front)
        return front

    def _match_each(self, seen: Seen) -> list[bytes | None]:
        """Look for each record by itself, and return the bytes that the digest should cover."""
        values = list(seen.values)
        for at, (record, value) in enumerate(zip(seen.chunk.records, values, strict=True)):
            offset = record.offset or 0
            if self._skipped and offset in self._skipped:
                del self._skipped[offset]
                self._scope.report.chunked_count += 1
                self._blame(FaultKind.REORDERED, seen, offset, f"comes after offset {self._last}")
            elif offset <= self._last:
                self._blame(FaultKind.REPEATED, seen, offset, "is in a chunk already")
            else:
                logged = self._take_one(seen, offset)
                if logged is not None:
                    self._compare(seen, record, value, logged)
                    values[at] = logged.value if value is None else value
        return values

    def _take_one(self, seen: Seen, offset: int) -> Logged | None:
        self._pass_over(seen, offset)
        self._last = offset
        report, starts = self._scope.report, self._scope.starts
        if self._queue and self._queue[0].offset == offset and self._queue[0].value is not None:
            report.chunked_count += 1
            return self._queue.pop(0)
        if offset < starts.records:
            report.record_gone_count += 1
        else:
            self._blame(FaultKind.ALTERED, seen, offset, "is no record of this session")
        return None

    def _pass_over(self, seen: Seen, offset: int) -> None:
        """Leave behind what stands before ``offset``."""
        passed = 0
        while passed < len(self._queue) and self._queue[passed].offset < offset:
            logged = self._queue[passed]
            passed += 1
            if logged.value is not None:
                self._skipped = self._skipped or {}
                self._skipped[logged.offset] = seen.chunk.t, logged.why_left_out
            else:
                what = "this end has no final chunk; the chunk with this t passed over it"
                self._blame_record(FaultKind.END, logged.offset, what, seen.chunk.t)
        del self._queue[:passed]

    def _compare(self, seen: Seen, record: WireRecord, value: bytes | None, logged: Logged) -> None:
        offset, expected = logged.offset, logged.value or b""
        if value is not None:
            found = sha256(value).hexdigest()
            is_same_size = True
        else:
            try:
                omitted = seen.omitted()
            except StateError as error:
                self._scope.blame_chunk(FaultKind.MALFORMED, seen, str(error))
                return
            found, is_same_size = omitted.sha256, omitted.size_bytes == len(expected)
        if found != sha256(expected).hexdigest() or not is_same_size:
            what = f"the record at offset {offset} has other bytes than the log (SHA-256 of each)"
            self._scope.blame_chunk(
                FaultKind.ALTERED, seen, what, sha256(expected).hexdigest(), found
            )
        elif record.timestamp_ms not in (logged.timestamp_ms, None):
            what = f"has timestamp {record.timestamp_ms}, in the log {logged.timestamp_ms}"
            self._blame(FaultKind.ALTERED, seen, offset, what)

    def _begin_at(self, seen: Seen) -> None:
        """Begin with this chunk: retention has deleted those before it."""
        self._chain.begin_at(seen)
        end = next((i for i, it in enumerate(self._queue) if it.value is None), len(self._queue))
        first = seen.chunk.records[0].offset or 0 if seen.chunk.records else None
        gone = [
            it
            for i, it in enumerate(self._queue)
            if (i < end if first is None else it.offset < first)
        ]
        del self._queue[: len(gone)]
        self._scope.report.chunk_gone_count += sum(1 for it in gone if it.value is not None)

    def _leave_ignored(self, seen: Seen) -> None:
        """Take the ends off the queue that ask for nothing; a final chunk's own stays."""
        scope, stop = self._scope, 0
        # What is left out may stand between an ignored end and the chunk's own.
        may_skip = not seen.chunk.records and not scope.is_forgetting_changed
        for at, logged in enumerate(self._queue):
            if logged.value is None and self._ends.is_ignored(logged.log_time_ms):
                stop = at + 1
            elif logged.value is None or not (may_skip and logged.repeats_within(scope.window)):
                break
        left = self._queue[:stop]
        del self._queue[:stop]
        end_count = sum(1 for it in left if it.value is None)
        self._ends.ignore(end_count)
        scope.report.duplicate_count += len(left) - end_count

    def _begin_anew_if_forgotten(self, seen: Seen) -> None:
        """Begin another chain where this chunk is the first of a session that was forgotten."""
        if seen.chunk.t != 1:
            return
        scope, silent_ms = self._scope, None
        if self._queue and seen.chunk.records and scope.is_by_time:
            silent_ms = self._ends.silent_ms(self._queue[0].log_time_ms)
        least_ms = scope.least_forget_ms or NEVER_MS
        if not scope.least_forget_ms or (silent_ms is not None and silent_ms <= least_ms):
            after = f"t={self._chain.t}"
            after += "" if silent_ms is None else f", only {silent_ms / 1000:g} s after its end"
            what = f"begins the session anew behind {after}: no chunk so far tells of a policy that"
            scope.blame_chunk(FaultKind.GAP, seen, f"{what} forgets it so soon")
        self._chain, self._ends.is_ended = ChainProof(self.name, scope), False

    def _take_final(self, seen: Seen) -> None:
        if self._ends.is_ended:
            self._scope.blame_chunk(FaultKind.END, seen, "a second end with nothing between")
            return
        if self._ends.takes_an_ignored():
            return
        window = self._scope.window
        rows = ((at, it) for at, it in enumerate(self._queue) if not it.repeats_within(window))
        at, following = next(rows, (0, None))
        if following is None:
            self._ends.wait()
        elif following.value is None:
            self._ends.take(following.log_time_ms)
            del self._queue[at]
        else:
            self._ends.take(None)
            if not self._is_end_gone():
                what = f"final, but the log goes on with a record at offset {following.offset}"
                self._scope.blame_chunk(FaultKind.END, seen, what + following.why_left_out)

    def _blame_untrue_end(self, offset: int) -> None:
        self._ends.awaited_count = 0
        if self._is_end_gone():
            return
        what = "no end of session in the log where the final chunk with this t tells of one"
        self._blame_record(FaultKind.END, offset, what, self._chain.t)

    def _is_end_gone(self) -> bool:
        """Tell whether retention may have deleted the end that the last chunk tells of."""
        return self._scope.starts.records > 0 and self._last < self._scope.starts.records

    def _settle_end(self, offset: int) -> None:
        """Judge an end that no final chunk took."""
        scope = self._scope
        if offset >= scope.processed:
            return
        if self._is_chunk_gone():
            scope.report.chunk_gone_count += self.open_count
            self.open_count = 0
            return
        what = "this end was processed and has no final chunk"
        self._blame_record(FaultKind.END, offset, what, self._chain.t + 1)
        self._blame_overdue()

    def _tokens_due(self, offset: int, value: bytes) -> int:
        """Return what a record adds to a chunk that must close some time; 0 if none need to."""
        if offset >= self._scope.processed or self._is_chunk_gone():
            return 0
        counts = self._scope.tokens([value])
        return 0 if counts is None else counts[0]

    def _is_chunk_gone(self) -> bool:
        """Tell whether retention may have deleted all the chunks of this session."""
        return self._chain.t == 0 and self._scope.starts.chunks > 0

    def _blame_overdue(self) -> None:
        """The open records were processed and can't be open any more."""
        if self.open_count:
            what = f"from here on {self.open_count} records were processed and are in no chunk"
            self._blame_record(
                FaultKind.MISSING,
                self._first_open,
                what,
                self._chain.t + 1,
                self.open_count,
            )
        self.open_count = self._open_tokens = 0

    def _blame(self, kind: FaultKind, seen: Seen, offset: int, what: str) -> None:
        self._scope.blame_chunk(kind, seen, f"the record at offset {offset} {what}")

    def _blame_record(
        self, kind: FaultKind, offset: int, what: str, t: int, count: int = 1
    ) -> None:
        """Report a fault that a message of the log shows; ``t`` is of the chunk it is about."""
        scope = self._scope
        fault = Fault(kind, what, scope.topics.records, scope.partition, offset, self.name, t)
        scope.report.blame(fault, count)
