"""All that a session is, as a value: what a changelog keeps and a restart begins with."""

from dataclasses import dataclass, replace

from processor.core.chunks import Chunk
from processor.core.digest import first_digest
from processor.core.records import Record


@dataclass(frozen=True, slots=True)
class SessionState:
    """All that a session is: ``SessionAccumulator(state, policy)`` goes on exactly as it would.

    Attributes:
        session: The session's key.
        t: Index of its last chunk, 0 before the first.
        digest: Digest of that chunk, or the session's first digest.
        next_offset: First offset that is in no chunk and not in ``records`` either.
        ended: The last chunk was final.
        records: The open records.
        opened_at_ms: Log time of the first open record.
        last_at_ms: Log time of the last one; of the end of a session that ended, if none is open. 0
            where that is not known.
    """

    session: str
    t: int
    digest: bytes
    next_offset: int = 0
    ended: bool = False
    records: tuple[Record, ...] = ()
    opened_at_ms: int = 0
    last_at_ms: int = 0

    @classmethod
    def new(cls, session: str) -> "SessionState":
        """Return the state of a session that no record has come for."""
        return cls(session, 0, first_digest(session))

    def anew(self) -> "SessionState":
        """Return the state of the next session of this name, once this one is forgotten."""
        return replace(SessionState.new(self.session), next_offset=self.next_offset)

    @classmethod
    def after(cls, chunk: Chunk) -> "SessionState":
        """Return the state that ``chunk`` leaves, with nothing open."""
        return cls(
            chunk.session,
            chunk.t,
            chunk.digest,
            chunk.next_offset,
            chunk.final,
            last_at_ms=chunk.ended_at_ms,
        )
