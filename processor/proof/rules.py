"""What one chunk must be by itself, and where it may end; no state.

A cut by a rule of the log says something about the record that follows it: it would have
exceeded the budget, or came too late, or (for every other rule) came in time. ``Next`` holds
that as numbers until the following chunk is seen. What the clock closed is taken as given.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from processor.core.chunks import FlushReason
from processor.proof.report import FaultKind
from processor.wire_models import WireChunk

NEVER_MS: Final = 1 << 62
_BY_TIME: Final = ("idle", "age")
_REASONS: Final = frozenset(FlushReason)


class Logged(NamedTuple):
    """A record as the log has it, or an end of session if ``value`` is ``None``.

    Attributes:
        offset: Its offset.
        timestamp_ms: Its timestamp.
        log_time_ms: Largest timestamp of the partition up to it.
        value: Its bytes.
        headers: Its headers, for who computes its chunk again.
        repeats: Offset of the record that it repeats by its id, see ``repeats.py``.
    """

    offset: int
    timestamp_ms: int
    log_time_ms: int
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    repeats: int | None = None

    def repeats_within(self, size: int) -> bool:
        """Tell whether it repeats a record of the ``size`` offsets before it."""
        return self.repeats is not None and self.offset - self.repeats <= size

    @property
    def why_left_out(self) -> str:
        """What a fault adds about a record that some policy might leave out, but no chunk's."""
        if self.repeats is None:
            return ""
        what = f"it repeats the record-id of offset {self.repeats}, which no policy that a chunk so"
        return f" ({what} far tells of leaves out; one under which no chunk closed may have)"


class Next(NamedTuple):
    """What the record after a cut must be, if the same rule still holds.

    Attributes:
        min_tokens: It has at least so many tokens.
        after_ms: Its log time is above this.
        until_ms: Its log time is at most this.
        rule: Stands for policy and counter.
    """

    min_tokens: int
    after_ms: int
    until_ms: int
    rule: int


ANYTHING: Final = Next(0, -1, NEVER_MS, 0)


def faults_within(chunk: WireChunk, size_bytes: int) -> Iterator[tuple[FaultKind, str]]:
    """Yield what is wrong with a chunk that no log is needed to see."""
    yield from ((FaultKind.BUDGET, what) for what in _wrong_budgets(chunk, size_bytes))
    yield from ((FaultKind.CUT, what) for what in _wrong_reasons(chunk))
    records = chunk.records
    if chunk.final != (chunk.flush == "end") or (not records and not chunk.final):
        what = f"{len(records)} records, final {chunk.final}, flush {chunk.flush}"
        yield FaultKind.END, what
    first, last = (records[0].offset, records[-1].offset) if records else (None, None)
    if (chunk.source.first_offset, chunk.source.last_offset) != (first, last):
        yield FaultKind.MALFORMED, "source offsets differ from those of its records"


def _wrong_budgets(chunk: WireChunk, size_bytes: int) -> Iterator[str]:
    policy, count = chunk.policy, len(chunk.records)
    total = sum([it.token_count for it in chunk.records])
    if chunk.token_count != total:
        yield f"token_count {chunk.token_count}, its records have {total}"
    if count > 1 and total > chunk.max_tokens:
        yield f"{count} records of {total} tokens in a budget of {chunk.max_tokens}"
    if chunk.over_budget != (total > chunk.max_tokens):
        yield f"over_budget {chunk.over_budget} with {total} tokens"
    if count > policy.max_chunk_records or (count > 1 and size_bytes > policy.max_chunk_bytes):
        yield f"{count} records, {size_bytes} bytes: above the policy's caps"


def _wrong_reasons(chunk: WireChunk) -> Iterator[str]:
    count = len(chunk.records)
    if chunk.flush not in _REASONS:
        yield f"unknown flush {chunk.flush!r}"
    if (chunk.flush == "oversize") != chunk.over_budget:
        yield f"flush {chunk.flush}, over_budget {chunk.over_budget}"
    if chunk.flush == "count" and count != chunk.policy.max_chunk_records:
        yield f"closed for its count with {count} records"


def fault_by_time(chunk: WireChunk, logged: Sequence[Logged]) -> str | None:
    """Return why the log times of a chunk's records do not allow it, or ``None``."""
    idle_ms, age_ms = _limits_ms(chunk)
    first, last = logged[0].log_time_ms, logged[-1].log_time_ms
    if last > first + age_ms:
        return f"its last record came {last - first} ms after its first"
    if last > first + idle_ms:  # else no pause within can be longer
        times = [it.log_time_ms for it in logged]
        pause = max(after - before for before, after in pairwise(times))
        if pause > idle_ms:
            return f"it goes on after a pause of {pause} ms"
    if chunk.flush in _BY_TIME:
        reason = "idle" if last + idle_ms <= first + age_ms else "age"
        if chunk.flush != reason or min(idle_ms, age_ms) == NEVER_MS:
            return f"closed for {chunk.flush}, which is not due first"
    return None


def after(chunk: WireChunk, logged: Sequence[Logged]) -> Next:
    """Return what a chunk's end says about the record that follows."""
    is_alone = len(logged) == 1 and (
        chunk.flush == "bytes" or chunk.token_count > chunk.policy.flush_tokens
    )
    if chunk.final or chunk.clock or is_alone:
        return ANYTHING
    idle_ms, age_ms = _limits_ms(chunk)
    deadline_ms = min(logged[-1].log_time_ms + idle_ms, logged[0].log_time_ms + age_ms)
    rule = _rule(chunk)
    if chunk.flush in _BY_TIME:
        return Next(0, deadline_ms, NEVER_MS, rule)
    left = chunk.policy.flush_tokens - chunk.token_count
    return Next(left + 1 if chunk.flush == "tokens" else 0, -1, deadline_ms, rule)


def fault_of_cut(expected: Next, chunk: WireChunk, first: Logged, *, by_time: bool) -> str | None:
    """Return why ``chunk`` does not follow where the one before it ended, or ``None``."""
    if expected is ANYTHING or expected.rule != _rule(chunk):
        return None
    tokens = chunk.records[0].token_count
    if tokens < expected.min_tokens:
        return f"its first record of {tokens} tokens fits into the chunk before it"
    if by_time and not expected.after_ms < first.log_time_ms <= expected.until_ms:
        return "the chunk before it closed for another reason than the log times give"
    return None


def _limits_ms(chunk: WireChunk) -> tuple[int, int]:
    policy = chunk.policy
    idle_ms = round(policy.idle_s * 1000) or NEVER_MS
    return idle_ms, round(policy.max_age_s * 1000) or NEVER_MS


def _rule(chunk: WireChunk) -> int:
    return hash((chunk.token_counter, chunk.max_tokens, chunk.policy))
