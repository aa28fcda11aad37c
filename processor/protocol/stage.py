"""What the next transaction of a partition will write, and what to count once it has."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from processor.core.chunks import Chunk
from processor.core.records import Carried
from processor.core.session_state import SessionState
from processor.metrics import MetricName, Metrics
from processor.protocol.changelog import PARTITION_KEY, encode_session
from processor.protocol.port import Message, Transaction
from processor.protocol.tracing import ChunkSpan
from processor.wire import ChunkEncoder, chunk_headers

#: Staged bytes of one partition beyond which nothing more is staged until they are committed, but
#: what a fetch closes: as many as a transaction carries well within its timeout.
MAX_STAGED_BYTES: Final = 32 << 20

Tally = Counter[tuple[MetricName, tuple[tuple[str, str], ...]]]


class Closed(NamedTuple):
    """What there is to tell of a chunk besides its records."""

    session: str
    t: int
    record_count: int
    token_count: int
    flush: str
    clock: bool


@dataclass(slots=True)
class Stage:
    """Collects; decides nothing.

    Attributes:
        output_bytes: Bytes of the chunks and of open records, for whoever bounds memory.
        closed: The chunks.
        appended_at_ms: When the first record of the first fetch that closed one was appended.
        spans: Of the chunks, where tracing is on.
        carried: Records of sessions read for the first time, by how a chunk carries them.
        tally: Everything else to count.
    """

    output_bytes: int = 0
    closed: list[Closed] = field(default_factory=list)
    appended_at_ms: int | None = None
    spans: list[ChunkSpan] = field(default_factory=list)
    carried: Counter[Carried] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Counter)
    _chunks: list[Message] = field(default_factory=list)
    _entries: dict[bytes, bytes | None] = field(default_factory=dict)
    _dead_letters: list[Message] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing but a position would be written."""
        return not (self._chunks or self._entries or self._dead_letters)

    def add_chunk(
        self,
        chunk: Chunk,
        encoder: ChunkEncoder,
        omitted: frozenset[int],
        span: ChunkSpan | None = None,
    ) -> None:
        """Add a chunk and the entry that its session has after it.

        Args:
            chunk: Just closed; its session's entry is made now, not when it is written.
            encoder: Makes its bytes.
            omitted: Offsets of records that the chunks topic has refused as too large.
            span: Its span, where tracing is on.
        """
        key = chunk.session.encode()
        lone_offset = chunk.records[0].offset if len(chunk.records) == 1 else None
        if lone_offset in omitted:
            self.tally["processor_omitted_records_total", ()] += 1
            value = encoder.encode_omitted(chunk)
        else:
            value = encoder.encode(chunk)
        self.tally["processor_chunks_total", (("flush", chunk.flush),)] += 1
        self.closed.append(
            Closed(
                chunk.session,
                chunk.t,
                len(chunk.records),
                chunk.token_count,
                chunk.flush,
                chunk.clock,
            )
        )
        self.output_bytes += len(value)
        headers = chunk_headers(chunk)
        if span is not None:
            self.spans.append(span)
            headers += span.headers
        self._chunks.append(Message(key, value, headers, lone_offset=lone_offset))
        self._entries[key] = encode_session(SessionState.after(chunk))

    def add_session(self, state: SessionState) -> None:
        """Add a session's entry, open records included."""
        entry = self._entries[state.session.encode()] = encode_session(state)
        self.output_bytes += len(entry)

    def remove_session(self, session: str) -> None:
        """Add the removal of a session's entry."""
        self._entries[session.encode()] = None

    def add_dead_letter(self, message: Message, reason: str) -> None:
        """Add a record that has no session."""
        self.tally["processor_dead_letters_total", (("reason", reason),)] += 1
        self._dead_letters.append(message)

    def tell(self, metrics: Metrics, now_ms: int) -> None:
        """Tell of what has just been committed, at ``now_ms``."""
        self.end_spans()
        metrics.increment("processor_transactions_total", result="committed")
        for (name, tags), value in self.tally.items():
            metrics.increment(name, value, **dict(tags))
        for chunk in self.closed:
            metrics.observe("processor_chunk_tokens", chunk.token_count)
            metrics.observe("processor_records_per_chunk", chunk.record_count)
        if self.appended_at_ms is not None:
            waited_s = max(now_ms - self.appended_at_ms, 0) / 1000
            metrics.observe("processor_chunk_latency_seconds", waited_s)

    def end_spans(self, error: BaseException | None = None) -> None:
        """Tell of all chunks that they are committed, or why not."""
        for span in self.spans:
            span.end(error)

    def transaction(self, entry: bytes, next_offset: int) -> Transaction:
        """Return all of it, with the partition's own entry and the group's offset."""
        entries = {**self._entries, PARTITION_KEY: entry}
        return Transaction(self._chunks, entries, self._dead_letters, next_offset)
