"""The rules that close a chunk, as two tables. No state.

``FLUSH_RULES`` are asked before a record joins: the first that holds closes the open chunk.
Deadlines come first, since they passed before the record came. ``ALONE_RULES`` are asked of a
chunk that holds its first record: one that no other record may join closes at once.
Grouping is next-fit (Johnson, 1973).
"""

from typing import Final

from processor.core.chunks import FlushReason, OpenChunk
from processor.core.policy import NEVER_MS, ChunkPolicy
from processor.core.records import Record


def deadline_ms(held: OpenChunk, policy: ChunkPolicy) -> int:
    """Return the instant after which ``held`` closes by time, ``NEVER_MS`` for none."""
    return min(held.last_at_ms + policy.idle_ms, held.opened_at_ms + policy.max_age_ms, NEVER_MS)


def why_late(held: OpenChunk, policy: ChunkPolicy) -> FlushReason:
    """Return which deadline of ``held`` comes first; at a tie it is idle."""
    is_idle = held.last_at_ms + policy.idle_ms <= held.opened_at_ms + policy.max_age_ms
    return FlushReason.IDLE if is_idle else FlushReason.AGE


def was_idle(held: OpenChunk, incoming: Record, policy: ChunkPolicy, now_ms: int) -> bool:
    """Tell whether no record came for ``idle_s``, before the chunk was too old."""
    return now_ms > deadline_ms(held, policy) and why_late(held, policy) is FlushReason.IDLE


def is_too_old(held: OpenChunk, incoming: Record, policy: ChunkPolicy, now_ms: int) -> bool:
    """Tell whether ``max_age_s`` passed since the first record, before the chunk was idle."""
    return now_ms > deadline_ms(held, policy) and why_late(held, policy) is FlushReason.AGE


def would_exceed_bytes(held: OpenChunk, incoming: Record, policy: ChunkPolicy, now_ms: int) -> bool:
    """Tell whether the encoded chunk would exceed ``max_chunk_bytes``."""
    return held.size_bytes + incoming.size_bytes > policy.max_chunk_bytes


def is_full(held: OpenChunk, incoming: Record, policy: ChunkPolicy, now_ms: int) -> bool:
    """Tell whether the chunk holds ``max_chunk_records`` already."""
    return len(held.records) >= policy.max_chunk_records


def would_exceed_budget(
    held: OpenChunk, incoming: Record, policy: ChunkPolicy, now_ms: int
) -> bool:
    """Tell whether the chunk would exceed its tokens."""
    return held.token_count + incoming.token_count > policy.flush_tokens


FLUSH_RULES: Final = (
    (FlushReason.IDLE, was_idle),
    (FlushReason.AGE, is_too_old),
    (FlushReason.BYTES, would_exceed_bytes),
    (FlushReason.COUNT, is_full),
    (FlushReason.TOKENS, would_exceed_budget),
)


def why_flush(
    held: OpenChunk, incoming: Record, policy: ChunkPolicy, now_ms: int
) -> FlushReason | None:
    """Return the first rule that closes ``held`` before ``incoming``, or ``None``."""
    return next((why for why, holds in FLUSH_RULES if holds(held, incoming, policy, now_ms)), None)


def is_over_budget(held: OpenChunk, policy: ChunkPolicy) -> bool:
    """Tell whether the chunk exceeds ``max_tokens``."""
    return held.token_count > policy.max_tokens


def is_above_flush_tokens(held: OpenChunk, policy: ChunkPolicy) -> bool:
    """Tell whether the chunk exceeds the tokens that close one."""
    return held.token_count > policy.flush_tokens


def is_above_bytes(held: OpenChunk, policy: ChunkPolicy) -> bool:
    """Tell whether the encoded chunk exceeds ``max_chunk_bytes``."""
    return held.size_bytes > policy.max_chunk_bytes


ALONE_RULES: Final = (
    (FlushReason.OVERSIZE, is_over_budget),
    (FlushReason.TOKENS, is_above_flush_tokens),
    (FlushReason.BYTES, is_above_bytes),
)


def why_alone(held: OpenChunk, policy: ChunkPolicy) -> FlushReason | None:
    """Return the rule by which the record in ``held`` stands alone, or ``None``."""
    return next((why for why, holds in ALONE_RULES if holds(held, policy)), None)
