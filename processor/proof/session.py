"""One session: its chunks take its records, and its ends, in order, and what is left is open."""

from typing import Final

from processor.proof.chain import ChainProof
from processor.proof.ends import Ends
from processor.proof.matching import Matching
from processor.proof.repeats import left_out
from processor.proof.report import FaultKind
from processor.proof.rules import NEVER_MS, Logged, faults_within
from processor.proof.seen import Scope, Seen

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
        "_matching",
        "_open_tokens",
        "_scope",
        "name",
        "open_count",
    )

    def __init__(self, name: str, scope: Scope) -> None:
        self.name = name
        self._scope = scope
        self._chain = ChainProof(name, scope)
        self._matching = Matching(name, scope)
        self._ends = Ends(scope)
        self._first_open = _NONE
        self._open_tokens = 0
        self.open_count = 0

    def take_record(self, logged: Logged) -> None:
        """Take the session's next record of the log."""
        self._matching.queue.append(logged)
        # One that is left out stands between nothing.
        if self._ends.awaited_count and not logged.repeats_within(self._scope.window):
            self._blame_untrue_end(logged.offset)

    def take_end(self, logged: Logged) -> None:
        """Take an end of session."""
        # What stands before it is open, or repeats a record that some chunk may still be of.
        is_next = self._ends.awaited_count or not self._matching.queue
        if is_next and self._ends.is_ignored(logged.log_time_ms):
            self._ends.ignore()
        elif not self._ends.meets(logged.log_time_ms):
            self._matching.queue.append(logged)

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
        logged = self._matching.take_front(seen)
        values = self._matching.match_each(seen) if logged is None else seen.values
        self._chain.take(seen, values, logged or ())
        if seen.chunk.records:
            self._ends.go_on()
        if seen.chunk.final:
            self._take_final(seen)

    def close(self) -> None:
        """Judge what no chunk took, once there are no more chunks; the queue is given up."""
        self._matching.close()
        queue, self._matching.queue = self._matching.queue, []
        for logged in queue:
            passing = self.pass_end if logged.value is None else self.pass_record
            passing(logged)

    def finish(self) -> None:
        """Judge an end that a final chunk told of and the log, now read, has not."""
        if self._ends.awaited_count:
            self._blame_untrue_end(self._matching.last)

    def _leave_repeated(self, seen: Seen) -> None:
        """Take the records off the queue that the chunk left out, and judge those it took."""
        gone = left_out(self._matching.queue, seen, self._scope.window)
        self._scope.report.duplicate_count += len(gone)
        if gone:
            offsets = {it.offset for it in gone}
            self._matching.queue = [it for it in self._matching.queue if it.offset not in offsets]
        chunked = {it.offset for it in seen.chunk.records}
        for logged in self._matching.queue:
            is_certain = (logged.repeats or 0) >= self._scope.starts.records
            size = seen.chunk.policy.deduplicate_records
            if is_certain and logged.repeats_within(size) and logged.offset in chunked:
                what = f"repeats the record-id of offset {logged.repeats}"
                self._blame(FaultKind.REPEATED, seen, logged.offset, what)

    def _begin_at(self, seen: Seen) -> None:
        """Begin with this chunk: retention has deleted those before it."""
        self._chain.begin_at(seen)
        end = next(
            (i for i, it in enumerate(self._matching.queue) if it.value is None),
            len(self._matching.queue),
        )
        first = seen.chunk.records[0].offset or 0 if seen.chunk.records else None
        gone = [
            it
            for i, it in enumerate(self._matching.queue)
            if (i < end if first is None else it.offset < first)
        ]
        del self._matching.queue[: len(gone)]
        self._scope.report.chunk_gone_count += sum(1 for it in gone if it.value is not None)

    def _leave_ignored(self, seen: Seen) -> None:
        """Take the ends off the queue that ask for nothing; a final chunk's own stays."""
        scope, stop = self._scope, 0
        # What is left out may stand between an ignored end and the chunk's own.
        may_skip = not seen.chunk.records and not scope.is_forgetting_changed
        for at, logged in enumerate(self._matching.queue):
            if logged.value is None and self._ends.is_ignored(logged.log_time_ms):
                stop = at + 1
            elif logged.value is None or not (may_skip and logged.repeats_within(scope.window)):
                break
        left = self._matching.queue[:stop]
        del self._matching.queue[:stop]
        end_count = sum(1 for it in left if it.value is None)
        self._ends.ignore(end_count)
        scope.report.duplicate_count += len(left) - end_count

    def _begin_anew_if_forgotten(self, seen: Seen) -> None:
        """Begin another chain where this chunk is the first of a session that was forgotten."""
        if seen.chunk.t != 1:
            return
        scope, silent_ms = self._scope, None
        if self._matching.queue and seen.chunk.records and scope.is_by_time:
            silent_ms = self._ends.silent_ms(self._matching.queue[0].log_time_ms)
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
        rows = (
            (at, it) for at, it in enumerate(self._matching.queue) if not it.repeats_within(window)
        )
        at, following = next(rows, (0, None))
        if following is None:
            self._ends.wait()
        elif following.value is None:
            self._ends.take(following.log_time_ms)
            del self._matching.queue[at]
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
        return self._scope.starts.records > 0 and self._matching.last < self._scope.starts.records

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
        fault = self._scope.fault_of_log(kind, offset, what, self.name, t)
        self._scope.report.blame(fault, count)
