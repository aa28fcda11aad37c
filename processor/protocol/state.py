"""What one opening of a partition knows: batches in, transactions out.

Theory of operation. A batch moves the position; below ``seen`` it only rebuilds what the last
owner held in memory (a replay), from there on it also counts and sets aside. Chunks, and the
entries of the sessions that they close, are staged. ``take`` cuts the stage off as one
transaction together with ``low`` and ``seen`` as they are at that moment: entries were made when
their chunks closed and the mark is read in the same breath, so what is durable and where a
replay starts always fit, however far the next batches have moved on while the commit is under way.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from processor.core.accumulator import SessionState
from processor.core.chunks import Chunk
from processor.core.errors import RecordError, StateError
from processor.core.policy import NEVER_MS, ChunkPolicy
from processor.core.records import Carried, Record
from processor.core.sessions import PartitionSessions
from processor.counters import TokenCounter, count_tokens
from processor.metrics import MetricName
from processor.protocol.changelog import (
    PARTITION_KEY,
    Counts,
    PartitionEntry,
    encode_partition,
    encode_session,
)
from processor.protocol.dead_letter import dead_letter, session_of
from processor.protocol.port import Batch, LogRecord, Message, Transaction
from processor.wire import ChunkEncoder, chunk_headers, read_value

_LOG_APPEND_TIME: Final = 1
_NOTHING: Final = ("", Carried.VALUE, 0)
#: A moved position alone is committed this often: a transaction costs a marker in every topic.
POSITION_INTERVAL_MS: Final = 1000

Tally = Counter[tuple[MetricName, tuple[tuple[str, str], ...]]]


@dataclass(frozen=True, slots=True)
class ChunkerConfig:
    """What every partition of a worker has in common.

    Attributes:
        topic: The records topic.
        policy: When chunks close.
        counter: Counts their tokens.
        max_replay_records: Bound of ``seen - low``: beyond it the oldest open sessions are
            written to the changelog with their records.
        max_replay_ms: The same in log time, well within the topic's retention.
        start_at_end: A first start begins at the log's end, not its start.
        accept_policy_change: Go on with another policy than the last owner's.
    """

    topic: str
    policy: ChunkPolicy
    counter: TokenCounter
    max_replay_records: int = 200_000
    max_replay_ms: int = NEVER_MS
    start_at_end: bool = False
    accept_policy_change: bool = False

    @property
    def rule(self) -> dict[str, Any]:
        """All that chunk boundaries depend on, by name, as the changelog keeps it."""
        policy = self.policy
        return {
            "token_counter": self.counter.name,
            "max_tokens": policy.max_tokens,
            "flush_tokens": policy.flush_tokens,
            "idle_s": policy.idle_s,
            "max_age_s": policy.max_age_s,
            "max_chunk_bytes": policy.max_chunk_bytes,
            "max_chunk_records": policy.max_chunk_records,
        }


@dataclass(slots=True)
class _Stage:
    chunks: list[Message] = field(default_factory=list)
    entries: dict[bytes, bytes | None] = field(default_factory=dict)
    dead_letters: list[Message] = field(default_factory=list)
    chunk_bytes: int = 0
    carried: Counter[Carried] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Counter)

    @property
    def is_empty(self) -> bool:
        return not (self.chunks or self.entries or self.dead_letters)


class PartitionState:
    """The sessions of one partition and what is staged for the next transaction.

    Args:
        config: What all partitions have in common.
        partition: Its number.
        entry: Where the last owner left it.
        sessions: Restored from the changelog, at ``entry``'s log time.
        omitted: Offsets of records that the chunks topic refused before.
    """

    def __init__(
        self,
        config: ChunkerConfig,
        partition: int,
        entry: PartitionEntry,
        sessions: PartitionSessions,
        omitted: frozenset[int] = frozenset(),
    ) -> None:
        self._config = config
        self._partition = partition
        self._partition_count = entry.partition_count
        self._omitted = omitted
        self._encoder = ChunkEncoder(config.policy, config.counter.name, config.topic, partition)
        self._fingerprint = entry.fingerprint
        self._stage = _Stage()
        self._taken_at_ms: int | None = None
        self._taken_seen = entry.seen
        self.sessions = sessions
        self.position = entry.low
        self.seen = entry.seen
        self.counts = Counts(
            entry.counts.records,
            entry.counts.chunked,
            entry.counts.dead_letters,
            entry.counts.ends,
        )

    @property
    def is_replaying(self) -> bool:
        """Whether records come that the last owner has processed already."""
        return self.position < self.seen

    @property
    def staged_bytes(self) -> int:
        """Bytes of the chunks staged, for whoever bounds memory."""
        return self._stage.chunk_bytes

    def feed(self, batch: Batch) -> None:
        """Process a batch; then, at the end of the log, close by the clock what is due.

        Raises:
            StateError: The batch does not start at our position; a record was lost on the way.
        """
        if batch.first_offset != self.position:
            message = (
                f"{self._config.topic}[{self._partition}]: a batch starts at "
                f"{batch.first_offset}, next is {self.position}; records were lost between fetch "
                "and chunker. Nothing was committed past them: restart, and report this"
            )
            raise StateError(message)
        self._feed_records(batch)
        self.position = batch.next_offset
        self.seen = max(self.seen, self.position)
        head = batch.head
        if head is not None and self.position >= head.high_watermark and not self.is_replaying:
            for chunk in self.sessions.close_due(head.asked_at_ms):
                self._stage_chunk(chunk)
        if not self.is_replaying:
            self._bound_replay()

    def take(self, now_ms: int) -> tuple[Transaction, Tally] | None:
        """Cut off what is staged, with the partition's entry as of now.

        Args:
            now_ms: The time (Unix milliseconds), to commit a moved position now and then.

        Returns:
            The transaction and what to count once it is committed; ``None`` when there is
            nothing worth one. The first after an opening is always worth one: it makes where
            we stand durable.
        """
        is_moved = self.seen > self._taken_seen
        is_due = self._taken_at_ms is None or now_ms - self._taken_at_ms >= POSITION_INTERVAL_MS
        is_first = self._taken_at_ms is None
        if self._stage.is_empty and not is_first and not (is_moved and is_due):
            return None
        stage, self._stage = self._stage, _Stage()
        self._taken_at_ms, self._taken_seen = now_ms, self.seen
        stage.entries[PARTITION_KEY] = self._entry()
        transaction = Transaction(stage.chunks, stage.entries, stage.dead_letters, self.seen)
        for carried, count in stage.carried.items():
            stage.tally["processor_records_total", (("carried", carried),)] = count
            self.counts.records += count
        return transaction, stage.tally

    def put(self, state: SessionState) -> None:
        """Set a session's state, durable with the next transaction."""
        self.sessions.restore(state)
        self._stage.entries[state.session.encode()] = encode_session(state)

    def forget(self, session: str) -> None:
        """Drop a session's state with the next transaction; if it returns it starts anew."""
        self.sessions.forget(session)
        self._stage.entries[session.encode()] = None

    def _feed_records(self, batch: Batch) -> None:
        records, seen, push = batch.records, self.seen, self.sessions.push
        read = [_NOTHING if it.value is None else read_value(it.value) for it in records]
        token_counts = count_tokens(self._config.counter, [text for text, _, _ in read])
        carried_count = self._stage.carried
        for record, (_, carried, size_bytes), token_count in zip(
            records, read, token_counts, strict=True
        ):
            offset, value, timestamp_ms = record.offset, record.value, record.timestamp
            by_producer = record.timestamp_type != _LOG_APPEND_TIME
            latest_ms = batch.arrived_at_ms if by_producer else NEVER_MS
            try:
                session = session_of(record.key)
            except RecordError as error:
                self.sessions.pass_by(timestamp_ms, latest_ms)
                self._set_aside(record, error)
                continue
            if value is None:
                chunks = self._end(session, record, latest_ms)
            else:
                if offset >= seen:
                    carried_count[carried] += 1
                held = Record(
                    session, value, token_count, offset, timestamp_ms, size_bytes, carried
                )
                chunks = push(held, latest_ms)
            for chunk in chunks:
                self._stage_chunk(chunk)
        if records:
            self._fingerprint = (records[-1].offset, records[-1].timestamp)

    def _end(self, session: str, record: LogRecord, latest_ms: int) -> tuple[Chunk, ...]:
        if record.offset >= self.seen:
            self.counts.ends += 1
            self._stage.tally["processor_session_ends_total", ()] += 1
        return self.sessions.end(session, record.offset, record.timestamp, latest_ms)

    def _set_aside(self, record: LogRecord, error: RecordError) -> None:
        # A replay passes dead letters again, but they are out already.
        if record.offset < self.seen:
            return
        self.counts.dead_letters += 1
        self._stage.tally["processor_dead_letters_total", (("reason", error.reason),)] += 1
        self._stage.dead_letters.append(
            dead_letter(record, self._config.topic, self._partition, error)
        )

    def _stage_chunk(self, chunk: Chunk) -> None:
        key, lone_offset = chunk.session.encode(), None
        self.counts.chunked += len(chunk.records)
        self._stage.tally["processor_chunks_total", (("flush", chunk.flush),)] += 1
        if len(chunk.records) == 1:
            lone_offset = chunk.records[0].offset
        if lone_offset in self._omitted:
            self._stage.tally["processor_omitted_records_total", ()] += 1
            value = self._encoder.encode_omitted(chunk)
        else:
            value = self._encoder.encode(chunk)
        self._stage.chunk_bytes += len(value)
        self._stage.chunks.append(
            Message(key, value, chunk_headers(chunk), lone_offset=lone_offset)
        )
        self._stage.entries[key] = encode_session(SessionState.after(chunk))

    def _bound_replay(self) -> None:
        """Checkpoint the oldest open sessions until a replay is short enough again."""
        while True:
            low = self.sessions.low_water(self.position)
            is_far = self.seen - low.offset > self._config.max_replay_records
            is_old = self.sessions.log_time_ms - low.log_time_ms > self._config.max_replay_ms
            state = self.sessions.checkpoint() if is_far or (is_old and low.log_time_ms) else None
            if state is None:
                return
            self._stage.entries[state.session.encode()] = encode_session(state)

    def _entry(self) -> bytes:
        low = self.sessions.low_water(self.position)
        return encode_partition(
            PartitionEntry(
                low=low.offset,
                log_time_ms=low.log_time_ms,
                seen=self.seen,
                partition_count=self._partition_count,
                rule=self._config.rule,
                fingerprint=self._fingerprint,
                counts=self.counts,
            )
        )
