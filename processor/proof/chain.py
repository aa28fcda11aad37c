"""One session's chain: ``t``, digests, tokens and cuts, from chunk to chunk."""

from collections.abc import Sequence

from processor.core.digest import first_digest, next_digest
from processor.proof.report import FaultKind
from processor.proof.rules import ANYTHING, Logged, Next, after, fault_by_time, fault_of_cut
from processor.proof.seen import Scope, Seen


class ChainProof:
    """Where a session's chain stands.

    Args:
        session: The session.
        scope: Its partition.

    Attributes:
        t: Index of the last chunk.
    """

    __slots__ = ("_digest", "_next", "_scope", "t")

    def __init__(self, session: str, scope: Scope) -> None:
        self.t = 0
        self._digest = first_digest(session).hex()
        self._next: Next = ANYTHING
        self._scope = scope

    def begin_at(self, seen: Seen) -> None:
        """Take for granted what a chunk says about those before it."""
        self.t, self._digest = seen.chunk.t - 1, seen.chunk.previous_digest

    def take(self, seen: Seen, values: Sequence[bytes | None], logged: Sequence[Logged]) -> None:
        """Judge the next chunk.

        Args:
            seen: The chunk.
            values: Its records' bytes, ``None`` where they are not known.
            logged: Its records in the log; none if they differ.
        """
        known = [value for value in values if value is not None]
        if self._is_next(seen) and len(known) == len(values):
            if self._scope.is_recomputed and known == seen.values:
                seen.is_digest_due = True
            else:
                check_digest(self._scope, seen, known)
            self._check_tokens(seen, known)
        self._check_cut(seen, logged)
        self.t, self._digest = seen.chunk.t, seen.chunk.digest

    def _is_next(self, seen: Seen) -> bool:
        chunk, scope = seen.chunk, self._scope
        if chunk.t != self.t + 1:
            scope.blame_chunk(FaultKind.GAP, seen, f"comes after t={self.t}")
        if chunk.previous_digest == self._digest:
            return True
        what = f"previous_digest is not the digest of t={self.t}"
        scope.blame_chunk(FaultKind.DIGEST, seen, what, self._digest, chunk.previous_digest)
        return False

    def _check_tokens(self, seen: Seen, values: Sequence[bytes]) -> None:
        counts = self._scope.tokens(values, seen)
        if counts is None:
            return
        if counts == [it.token_count for it in seen.chunk.records]:
            return
        for record, count in zip(seen.chunk.records, counts, strict=True):
            if record.token_count != count:
                what = f"the record at offset {record.offset} has {count} tokens, not "
                what += f"{record.token_count}"
                self._scope.blame_chunk(FaultKind.BUDGET, seen, what)

    def _check_cut(self, seen: Seen, logged: Sequence[Logged]) -> None:
        expected, self._next = self._next, ANYTHING
        if not logged:
            return
        by_time = self._scope.is_by_time
        what = fault_of_cut(expected, seen.chunk, logged[0], by_time=by_time)
        if what is None and by_time:
            what = fault_by_time(seen.chunk, logged)
        if what is not None:
            self._scope.blame_chunk(FaultKind.CUT, seen, what)
        self._next = after(seen.chunk, logged)


def check_digest(scope: Scope, seen: Seen, values: Sequence[bytes]) -> None:
    """Judge a chunk's digest by the one before it, which it names, and its records' bytes."""
    digest = next_digest(bytes.fromhex(seen.chunk.previous_digest), values).hex()
    if digest != seen.chunk.digest:
        what = "digest is not that of its records"
        scope.blame_chunk(FaultKind.DIGEST, seen, what, digest, seen.chunk.digest)
