"""Two ways to cut the same records: where chunks lie, and what differs in sum."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from processor.core.records import Record


class Span(NamedTuple):
    """Where a chunk lies, and its sums.

    Attributes:
        t: Its index.
        first_offset: Offset of its first record; of an empty one the offset behind ``last_offset``.
        last_offset: Offset of its last record; of an empty one that of the record before it.
        record_count: Its records.
        token_count: Their tokens.
        max_tokens: Its budget.
        flush: Why it closed; ``end`` also where the records end.
    """

    t: int
    first_offset: int
    last_offset: int
    record_count: int
    token_count: int
    max_tokens: int
    flush: str

    @classmethod
    def of(
        cls, t: int, records: Sequence[Record], flush: str, max_tokens: int, before: Record | None
    ) -> "Span":
        """Return the span of a chunk; ``before`` is the record before its first one."""
        if not records:
            last = -1 if before is None else before.offset or 0
            return cls(t, last + 1, last, 0, 0, max_tokens, flush)
        first, last = records[0].offset or 0, records[-1].offset or 0
        tokens = sum(it.token_count for it in records)
        return cls(t, first, last, len(records), tokens, max_tokens, flush)

    @property
    def end(self) -> tuple[int, bool]:
        """Where it ends; an empty one ends behind the one before it."""
        return self.last_offset, not self.record_count


class Change(NamedTuple):
    """A chunk that stands on one side alone."""

    session: str
    is_added: bool
    span: Span


@dataclass(slots=True)
class Side:
    """Sums of one side of the diff."""

    chunk_count: int = 0
    record_count: int = 0
    token_count: int = 0
    over_budget_count: int = 0
    _fill_sum: float = 0
    _filled_count: int = 0

    @property
    def fill_ratio(self) -> float | None:
        """How full the chunks with records are in the mean; one above its budget counts as full."""
        return self._fill_sum / self._filled_count if self._filled_count else None

    def take(self, span: Span) -> None:
        """Add a chunk."""
        self.chunk_count += 1
        self.record_count += span.record_count
        self.token_count += span.token_count
        self.over_budget_count += span.token_count > span.max_tokens
        if span.record_count:
            self._fill_sum += min(1.0, span.token_count / span.max_tokens)
            self._filled_count += 1


@dataclass(slots=True)
class Diff:
    """Sums of both sides.

    Attributes:
        old: As the chunks are.
        new: As they would be.
        kept_count: Boundaries on both sides.
        removed_count: Boundaries of the old side alone.
        added_count: Boundaries of the new side alone.
        unchanged_count: Chunks of the same records on both sides.
        as_given_count: Records whose bytes are not to be had, so that their tokens are as given.
    """

    old: Side = field(default_factory=Side)
    new: Side = field(default_factory=Side)
    kept_count: int = 0
    removed_count: int = 0
    added_count: int = 0
    unchanged_count: int = 0
    as_given_count: int = 0
