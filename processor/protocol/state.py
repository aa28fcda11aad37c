"""What one opening of a partition knows: batches in, transactions out.

Theory of operation. A batch moves the position; below ``seen`` it only rebuilds what the last
owner held in memory (a replay), from there on it also counts and sets aside. Chunks, and the
entries of the sessions that they close, are staged. ``take`` cuts the stage off as one
transaction together with ``low`` and ``seen`` as they are at that moment: entries were made when
their chunks closed and the mark is read in the same breath, so what is durable and where a
replay starts always fit, however far the next batches have moved on while the commit is under way.
"""

from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from processor.core.chunks import Chunk
from processor.core.errors import RecordError, StateError
from processor.core.policy import NEVER_MS, ChunkPolicy
from processor.core.session_state import SessionState
from processor.core.sessions import PartitionSessions
from processor.counters import TokenCounter
from processor.protocol.changelog import Counts, PartitionEntry, encode_partition
from processor.protocol.dead_letter import dead_letter, session_of
from processor.protocol.port import Batch, LogRecord, Transaction
from processor.protocol.runs import Columns, columns, grouped
from processor.protocol.stage import Stage
from processor.wire import ChunkEncoder

#: A moved position alone is committed this often: a transaction costs a marker in every topic.
POSITION_INTERVAL_MS: Final = 1000
_carried: Final = attrgetter("carried")


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


class PartitionState:
    """The sessions of one partition and what is staged for the next transaction.

    Args:
        config: What all partitions have in common.
        partition: Its number.
        entry: Where the last owner left it.
        sessions: Restored from the changelog, at ``entry``'s log time.
        omitted: Offsets of records that the chunks topic refused before.

    Attributes:
        sessions: The sessions, as of ``position``.
        position: The offset fed next.
        seen: First offset never processed, by us or by an owner before.
        is_behind: There is more in the log than we were fed.
        caught_up_at_ms: When there was last nothing more; 0 when never.
        counts: What became of the records, as of the last transaction taken.
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
        self._stage = Stage()
        self._taken_at_ms: int | None = None
        self._taken_seen = entry.seen
        self.sessions = sessions
        self.is_behind = True
        self.caught_up_at_ms = 0
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

    @property
    def unaccounted_record_count(self) -> int:
        """Records that are in no chunk and not open: 0, or something is very wrong."""
        if self.is_replaying:
            return 0
        read = self.counts.records + self._stage.carried.total()
        return read - self.counts.chunked - self.sessions.open_record_count

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
        self.is_behind = head is None or self.position < head.high_watermark or self.is_replaying
        if head is not None and not self.is_behind:
            self.caught_up_at_ms = batch.arrived_at_ms
            for chunk in self.sessions.close_due(head.asked_at_ms):
                self._stage_chunk(chunk)
        if not self.is_replaying:
            self._bound_replay()

    def take(self, now_ms: int) -> tuple[Transaction, Stage] | None:
        """Cut off what is staged, with the partition's entry as of now.

        Args:
            now_ms: The time (Unix milliseconds), to commit a moved position now and then.

        Returns:
            The transaction and what to tell of it once it is committed; ``None`` when there is
            nothing worth one. The first after an opening is always worth one: it makes where
            we stand durable.

        Raises:
            StateError: A record is neither in a chunk nor open.
        """
        if self._stage.is_empty and self._taken_at_ms is not None:
            is_due = now_ms - self._taken_at_ms >= POSITION_INTERVAL_MS
            if self.seen == self._taken_seen or not is_due:
                return None
        stage, self._stage = self._stage, Stage()
        self._taken_at_ms, self._taken_seen = now_ms, self.seen
        for carried, count in stage.carried.items():
            stage.tally["processor_records_total", (("carried", carried),)] = count
            self.counts.records += count
        self._check_conservation()
        return stage.transaction(self._entry(), self.seen), stage

    def put(self, state: SessionState) -> None:
        """Set the state of a session with nothing open, durable with the next transaction.

        Raises:
            StateError: It has open records, before or after; they may not come or go like this.
        """
        self._check_nothing_open(state.session)
        if state.records:
            message = f"session {state.session!r}: open records come from the log alone"
            raise StateError(message)
        self.sessions.restore(state)
        self._stage.add_session(state)

    def forget(self, session: str) -> None:
        """Drop the state of a session with nothing open; if it returns it starts at ``t`` = 1.

        Raises:
            StateError: It has open records.
        """
        self._check_nothing_open(session)
        self.sessions.forget(session)
        self._stage.remove_session(session)

    def _check_nothing_open(self, session: str) -> None:
        state = self.sessions.state(session)
        if state is not None and state.records:
            message = f"session {session!r} has open records, which would be lost; end it first"
            raise StateError(message)

    def _check_conservation(self) -> None:
        """Every record is in a chunk or open, now; before anything else is made durable."""
        if self.unaccounted_record_count:
            message = (
                f"{self._config.topic}[{self._partition}]: {self.counts.records} records were "
                f"read up to offset {self.seen}, but {self.counts.chunked} are in chunks and "
                f"{self.sessions.open_record_count} open. Nothing more is committed: run "
                "`processor verify`, and report this"
            )
            raise StateError(message)

    def _feed_records(self, batch: Batch) -> None:
        log = columns(batch.records, batch.arrived_at_ms, self.sessions.log_time_ms)
        # An end stands between its session's records, so it is fed by itself.
        start = 0
        for stop in [index for index, value in enumerate(log.values) if value is None]:
            self._feed_stretch(log.part(start, stop))
            self._feed_end(log.records[stop], log.times_ms[stop + 1])
            start = stop + 1
        self._feed_stretch(log.part(start, len(log.records)) if start else log)
        if log.records:
            self._fingerprint = (log.offsets[-1], log.timestamps_ms[-1])
            if self._stage.closed and self._stage.appended_at_ms is None:
                self._stage.appended_at_ms = log.timestamps_ms[0]

    def _feed_stretch(self, stretch: Columns) -> None:
        runs, sessionless = grouped(stretch, self._config.counter)
        read = chain.from_iterable(run.records for run in runs)
        new = (it for it in read if (it.offset or 0) >= self.seen) if self.is_replaying else read
        self._stage.carried.update(map(_carried, new))
        for record, error in sessionless:
            self._set_aside(record, error)
        for chunk in self.sessions.feed(runs, stretch.times_ms[-1]):
            self._stage_chunk(chunk)

    def _feed_end(self, record: LogRecord, at_ms: int) -> None:
        try:
            session = session_of(record.key)
        except RecordError as error:
            self.sessions.pass_by(at_ms)
            self._set_aside(record, error)
            return
        if record.offset >= self.seen:
            self.counts.ends += 1
            self._stage.tally["processor_session_ends_total", ()] += 1
        for chunk in self.sessions.end(session, record.offset, at_ms):
            self._stage_chunk(chunk)

    def _set_aside(self, record: LogRecord, error: RecordError) -> None:
        # A replay passes dead letters again, but they are out already.
        if record.offset < self.seen:
            return
        self.counts.dead_letters += 1
        message = dead_letter(record, self._config.topic, self._partition, error)
        self._stage.add_dead_letter(message, error.reason)

    def _stage_chunk(self, chunk: Chunk) -> None:
        self.counts.chunked += len(chunk.records)
        self._stage.add_chunk(chunk, self._encoder, self._omitted)

    def _bound_replay(self) -> None:
        """Checkpoint the oldest open sessions until a replay is short enough again."""
        while True:
            low = self.sessions.low_water(self.position)
            is_far = self.seen - low.offset > self._config.max_replay_records
            is_old = self.sessions.log_time_ms - low.log_time_ms > self._config.max_replay_ms
            state = self.sessions.checkpoint() if is_far or (is_old and low.log_time_ms) else None
            if state is None:
                return
            self._stage.add_session(state)

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
                topic=self._config.topic,
            )
        )
