"""What goes out: a closed chunk, and the open one that becomes it."""

from dataclasses import dataclass, field
from enum import StrEnum

from processor.core.records import Record


class FlushReason(StrEnum):
    """Why a chunk closed."""

    IDLE = "idle"
    AGE = "age"
    END = "end"
    BYTES = "bytes"
    COUNT = "count"
    TOKENS = "tokens"
    OVERSIZE = "oversize"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole records of one session, in order; within the budget or a single larger record.

    Attributes:
        session: The session's key.
        t: Index in the session, contiguous from 1.
        records: The records; none only in a final chunk that marks an end by itself.
        token_count: Their tokens together.
        over_budget: It is one record above ``max_tokens``.
        flush: Why it closed.
        final: An end of session closed it.
        clock: The clock closed it, not a record of the log.
        previous_digest: Digest of the chunk before, 32 bytes.
        digest: This chunk's, see ``core/digest.py``.
        next_offset: First offset of the log after it, the end that closed it included.
        ended_at_ms: Log time of that end; 0 if it is not final.
    """

    session: str
    t: int
    records: tuple[Record, ...]
    token_count: int
    over_budget: bool
    flush: FlushReason
    final: bool
    clock: bool
    previous_digest: bytes
    digest: bytes
    next_offset: int
    ended_at_ms: int = 0


@dataclass(slots=True)
class OpenChunk:
    """The records that a session holds back, with what the flush rules ask of them."""

    records: list[Record] = field(default_factory=list)
    token_count: int = 0
    size_bytes: int = 0
    opened_at_ms: int = 0
    last_at_ms: int = 0
