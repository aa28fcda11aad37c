"""A chunk as a proof sees it, and what its partition's proofs have in common."""

from collections.abc import Sequence
from typing import Final

import msgspec

from processor.core.errors import ConfigError, StateError
from processor.counters import TokenCounter, count_tokens, counter_named, texts_of
from processor.proof.message import Message, Starts, Topics
from processor.proof.report import Fault, FaultKind, Report
from processor.wire_models import WireChunk, decode_chunk

_LOG_APPEND_TIME: Final = 1


class Omitted(msgspec.Struct):
    """What stands for a record that no message can carry."""

    sha256: str
    size_bytes: int = msgspec.field(name="bytes")


class _OmittedChunk(msgspec.Struct):
    records: list[Omitted]


class Seen:
    """A chunk with the message that it came in.

    Attributes:
        message: The message.
        chunk: The chunk.
        size_bytes: Bytes of the message's value.
        values: The records' bytes, ``None`` for one that is omitted.
        offsets: Their offsets.
        headers: Headers that go along with each, their values as they came in.
        is_raw: All are carried as ``value``: strict JSON, without line breaks.
        token_counts: Their tokens, by the counter that the chunk names; ``None`` as long as nobody
            has counted, or where one is no UTF-8.
        is_digest_due: Nobody has judged its digest yet: a chunk that is computed again is not
            hashed twice.
        last_offset: Offset up to which the log is needed; -1 when it holds no record.

    Raises:
        StateError: It is no chunk of a log.
    """

    __slots__ = (
        "chunk",
        "headers",
        "is_digest_due",
        "is_raw",
        "last_offset",
        "message",
        "offsets",
        "size_bytes",
        "token_counts",
        "values",
    )

    def __init__(self, message: Message) -> None:
        value = message.value or b""
        self.message = message
        self.size_bytes = len(value)
        self.chunk: WireChunk = decode_chunk(value)
        records = self.chunk.records
        raw = [it.value for it in records]
        self.is_raw = all(map(len, raw)) and b"\n" not in value and b"\r" not in value
        self.token_counts: list[int] | None = None
        self.is_digest_due = False
        try:
            self.values = (
                list(map(bytes, raw)) if self.is_raw else [it.value_bytes for it in records]
            )
            self.headers = [it.header_bytes if it.headers else () for it in records]
            bytes.fromhex(self.chunk.previous_digest + self.chunk.digest)
        except ValueError as error:
            message_text = f"not a chunk: {error}"
            raise StateError(message_text) from error
        self.offsets = [-1 if it.offset is None else it.offset for it in records]
        has_value = [it is not None for it in self.values]
        if -1 in self.offsets or has_value != [it.omitted is None for it in records]:
            message_text = "not a chunk: a record without its offset or its value"
            raise StateError(message_text)
        self.last_offset = max(self.offsets, default=-1)

    def omitted(self) -> Omitted:
        """Return what stands for its only record.

        Raises:
            StateError: Its size or its SHA-256 is missing.
        """
        try:
            (omitted,) = msgspec.json.decode(self.message.value or b"", type=_OmittedChunk).records
        except (msgspec.DecodeError, ValueError) as error:
            message = f"an omitted record must have bytes and sha256, and be alone: {error}"
            raise StateError(message) from error
        return omitted


class Scope:
    """One partition: its names, where its logs start, and where faults go.

    Attributes:
        topics: Names of the topics.
        partition: Its number.
        starts: Where each of its logs starts.
        report: Where faults go.
        processed: Offset of the log below which all is known to be processed.
        is_by_time: Its times are the broker's, so that cuts by time can be computed again.
        is_recomputed: Every chunk is computed again, too.
        flush_tokens: Tokens that close a chunk, as the latest one says.
        window: Offsets in which repeated records are left out, the most that any chunk says.
        forget_ms: After so long a session that ended begins anew, as the latest chunk says; 0 is
            never.
        least_forget_ms: The least that any chunk has said of that; what was forgotten stays so.
        is_forgetting_changed: Chunks say different things of that.
    """

    def __init__(
        self, topics: Topics, partition: int, starts: Starts, report: Report, processed: int
    ) -> None:
        self.topics = topics
        self.partition = partition
        self.starts = starts
        self.report = report
        self.processed = processed
        self.is_by_time = True
        self.flush_tokens: int | None = None
        self.is_recomputed = False
        self._max_tokens = 0
        self.window = 0
        self.forget_ms: int | None = None
        self.least_forget_ms = 0
        self.is_forgetting_changed = False
        self._counter: TokenCounter | None = None
        self._counter_name = ""

    def follow(self, seen: Seen) -> None:
        """Take the policy and the progress that a chunk tells of."""
        chunk = seen.chunk
        self.processed = max(self.processed, seen.last_offset + 1)
        self.flush_tokens = chunk.policy.flush_tokens
        self._max_tokens = chunk.max_tokens
        if chunk.token_counter != self._counter_name:
            self._counter_name = chunk.token_counter
            self._counter = self._counter_named(chunk.token_counter)

    def note_forgetting(self, seen: Seen) -> None:
        """Take after how long a chunk's policy forgets ended sessions."""
        forget_ms, before_ms = round(seen.chunk.policy.forget_ended_after_s * 1000), self.forget_ms
        self.forget_ms = forget_ms
        if forget_ms:
            self.least_forget_ms = min(self.least_forget_ms or forget_ms, forget_ms)
        if before_ms in {None, forget_ms} or self.is_forgetting_changed:
            return
        self.is_forgetting_changed = True
        self.report.warnings.append(
            f"{self.topics.chunks}[{self.partition}]@{seen.message.offset}: from here on "
            f"forget_ended_after_s is {forget_ms / 1000:g}, before it {(before_ms or 0) / 1000:g}. "
            "By which one an end of session was read is not in the log: whether an end behind an "
            "end has a final chunk, and whether an ended session begins anew, is taken from the "
            "chunks. --since a time behind the change judges that too"
        )

    def note_time(self, timestamp_type: int) -> None:
        """Take the kind of a record's timestamp."""
        if timestamp_type != _LOG_APPEND_TIME:
            self.is_by_time = False

    def tokens(self, values: Sequence[bytes], of: Seen | None = None) -> list[int] | None:
        """Return the tokens of each value, ``None`` when the chunks' counter is not here.

        Args:
            values: The values.
            of: The chunk that they are all of, to note their tokens there.
        """
        counter = self._counter
        if counter is None:
            return None
        try:
            texts = texts_of(counter, values)
        except UnicodeDecodeError:
            texts = [value.decode("utf-8", "replace") for value in values]
            return count_tokens(counter, texts, self._max_tokens)
        counts = count_tokens(counter, texts, self._max_tokens)
        if of is not None:
            of.token_counts = counts
        return counts

    def blame_chunk(
        self,
        kind: FaultKind,
        seen: Seen,
        what: str,
        expected: str | None = None,
        found: str | None = None,
    ) -> None:
        """Report a fault that a chunk shows."""
        chunk, offset = seen.chunk, seen.message.offset
        self.report.blame(
            Fault(
                kind,
                what,
                self.topics.chunks,
                self.partition,
                offset,
                chunk.session,
                chunk.t,
                expected,
                found,
            )
        )

    def fault_of_log(self, kind: FaultKind, offset: int, what: str, session: str, t: int) -> Fault:
        """Return a fault that a message of the log shows; ``t`` is of the chunk it is about."""
        return Fault(kind, what, self.topics.records, self.partition, offset, session, t)

    def _counter_named(self, name: str) -> TokenCounter | None:
        try:
            return counter_named(name)
        except ConfigError as error:
            warning = f"tokens are taken as given: {error}"
            if warning not in self.report.warnings:
                self.report.warnings.append(warning)
            return None
