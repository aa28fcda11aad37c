"""A session's records of the log against those of its next chunk: the same ones, to the byte.

That is compared in one go. Only where it differs is each record looked at by itself.
"""

from hashlib import sha256
from typing import Final

from processor.core.errors import StateError
from processor.proof.report import FaultKind
from processor.proof.rules import Logged
from processor.proof.seen import Scope, Seen
from processor.wire_models import WireRecord

_NONE: Final = -1


class Matching:
    """What of a session's log is in no chunk yet.

    Args:
        session: The session.
        scope: Its partition.

    Attributes:
        queue: Records and ends that no chunk has taken, in order.
        last: Offset of the last record that one took.
    """

    __slots__ = ("_scope", "_session", "_skipped", "last", "queue")

    def __init__(self, session: str, scope: Scope) -> None:
        self._session = session
        self._scope = scope
        # Offsets that a chunk passed over, with its t, and why it may have.
        self._skipped: dict[int, tuple[int, str]] | None = None
        self.queue: list[Logged] = []
        self.last = _NONE

    def take_front(self, seen: Seen) -> list[Logged] | None:
        """Take the chunk's records off the queue if they are its front, exactly."""
        values = seen.values
        front = self.queue[: len(values)]
        # In columns, not record by record: of what is compared here, nearly all is equal.
        if [it.value for it in front] != values or [it.offset for it in front] != seen.offsets:
            return None
        times_ms = [it.timestamp_ms for it in seen.chunk.records]
        if None in values or [it.timestamp_ms for it in front] != times_ms:
            return None
        if front:
            del self.queue[: len(front)]
            self.last = front[-1].offset
            self._scope.report.chunked_count += len(front)
        return front

    def match_each(self, seen: Seen) -> list[bytes | None]:
        """Look for each record by itself, and return the bytes that the digest should cover."""
        values = list(seen.values)
        for at, (record, value) in enumerate(zip(seen.chunk.records, values, strict=True)):
            offset = record.offset or 0
            if self._skipped and offset in self._skipped:
                del self._skipped[offset]
                self._scope.report.chunked_count += 1
                self._blame(FaultKind.REORDERED, seen, offset, f"comes after offset {self.last}")
            elif offset <= self.last:
                self._blame(FaultKind.REPEATED, seen, offset, "is in a chunk already")
            else:
                logged = self._take_one(seen, offset)
                if logged is not None:
                    self._compare(seen, record, value, logged)
                    values[at] = logged.value if value is None else value
        return values

    def _take_one(self, seen: Seen, offset: int) -> Logged | None:
        self._pass_over(seen, offset)
        self.last = offset
        report, starts = self._scope.report, self._scope.starts
        if self.queue and self.queue[0].offset == offset and self.queue[0].value is not None:
            report.chunked_count += 1
            return self.queue.pop(0)
        if offset < starts.records:
            report.record_gone_count += 1
        else:
            self._blame(FaultKind.ALTERED, seen, offset, "is no record of this session")
        return None

    def _pass_over(self, seen: Seen, offset: int) -> None:
        """Leave behind what stands before ``offset``."""
        passed = 0
        while passed < len(self.queue) and self.queue[passed].offset < offset:
            logged = self.queue[passed]
            passed += 1
            if logged.value is not None:
                self._skipped = self._skipped or {}
                self._skipped[logged.offset] = seen.chunk.t, logged.why_left_out
            else:
                what = "this end has no final chunk; the chunk with this t passed over it"
                scope, of = self._scope, (self._session, seen.chunk.t)
                scope.report.blame(scope.fault_of_log(FaultKind.END, logged.offset, what, *of))
        del self.queue[:passed]

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

    def close(self) -> None:
        """Tell which records were passed over for good: there are no more chunks."""
        if self._skipped:
            offset, (t, why) = next(iter(self._skipped.items()))
            what = f"passed over by the chunk with this t{why}"
            fault = self._scope.fault_of_log(FaultKind.MISSING, offset, what, self._session, t)
            self._scope.report.blame(fault, len(self._skipped))

    def _blame(self, kind: FaultKind, seen: Seen, offset: int, what: str) -> None:
        self._scope.blame_chunk(kind, seen, f"the record at offset {offset} {what}")
