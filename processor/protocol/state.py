"""What one opening of a partition knows: batches in, transactions out.

Theory of operation. A batch moves the position; below ``seen`` it only rebuilds what the last
owner held in memory (a replay), from there on it also counts and sets aside. Chunks, and the
entries of the sessions that they close, are staged. ``take`` cuts the stage off as one
transaction together with ``low`` and ``seen`` as they are at that moment: entries were made when
their chunks closed and the mark is read in the same breath, so what is durable and where a
replay starts always fit, however far the next batches have moved on while the commit is under way.
"""

from collections.abc import Set as AbstractSet
from copy import copy
from itertools import chain
from typing import TYPE_CHECKING

from processor.core.chunks import Chunk
from processor.core.errors import RecordError, StateError
from processor.core.session_state import SessionState
from processor.core.sessions import PartitionSessions
from processor.protocol.changelog import UNKNOWN, PartitionEntry, encode_partition
from processor.protocol.dead_letter import dead_letter, session_of
from processor.protocol.job import Pace, check_follows
from processor.protocol.mismatches import Mismatches
from processor.protocol.port import Batch, LogRecord, Transaction
from processor.protocol.record_ids import RecordIds
from processor.protocol.runs import Columns, Keys, columns, grouped, keys_of
from processor.protocol.stage import MAX_STAGED_BYTES, Stage
from processor.wire import ChunkEncoder

if TYPE_CHECKING:
    from processor.protocol.chunking import ChunkerConfig


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
        counts: What became of the records, as of the last transaction taken.
    """

    def __init__(
        self,
        config: "ChunkerConfig",
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
        self._meter = entry.meter
        self._stage = Stage()
        self._pace = Pace(entry.seen)
        self._tracing = config.tracing(partition) if config.tracing else None
        self._mismatches = Mismatches(config.topic, partition)
        self.sessions = sessions
        self.is_behind = True
        self._caught_up_at_ms = 0
        self.position = entry.low
        self.seen = entry.seen
        self.counts = copy(entry.counts)
        self._low = entry.low
        self._ids = RecordIds(config.policy.deduplicate_records)
        if entry.rule.get("deduplicate_records") != config.rule.get("deduplicate_records"):
            self.counts.duplicates = UNKNOWN

    @property
    def _where(self) -> str:
        return f"{self._config.topic}[{self._partition}]"

    @property
    def is_replaying(self) -> bool:
        """Whether records come that the last owner has processed already."""
        return self.position < self.seen

    @property
    def staged_bytes(self) -> int:
        """Bytes of chunks and open records staged, for whoever bounds memory."""
        return self._stage.output_bytes

    @property
    def as_of_ms(self) -> int:
        """See ``JobState.as_of_ms``."""
        return max(self.sessions.log_time_ms, self._caught_up_at_ms)

    @property
    def unaccounted_record_count(self) -> int:
        """Records that are in no chunk, not open and no duplicates: 0, or something is wrong."""
        if self.is_replaying:
            return 0
        staged_count = self._stage.carried.total()
        return self.counts.unaccounted(staged_count, self.sessions.open_record_count)

    def look_back(self, log_start: int) -> None:
        """Begin as far before the replay as records are remembered by their ids.

        Args:
            log_start: First offset that the log still holds.
        """
        wanted = self._low - self._config.policy.deduplicate_records
        self.position = max(wanted, log_start)
        if wanted < self.position > 0:
            # What a record that is deleted now made a duplicate is none in the replay.
            self.counts.duplicates = UNKNOWN

    def feed(self, batch: Batch) -> None:
        """Process a batch; then, at the end of the log, close by the clock what is due.

        Raises:
            StateError: The batch does not start at our position; a record was lost on the way.
                Or too many of its records have no session; nothing of it is taken in.
        """
        check_follows(batch, self.position, self._config.topic)
        if self._tracing is not None:
            self._tracing.take(batch.records)
        self._feed_records(batch)
        self.position = batch.next_offset
        self.seen = max(self.seen, self.position)
        head = batch.head
        self.is_behind = head is None or self.position < head.high_watermark or self.is_replaying
        if head is not None and not self.is_behind:
            self._caught_up_at_ms = batch.arrived_at_ms
            for chunk in self.sessions.close_due(head.asked_at_ms):
                self._stage_chunk(chunk)
                # After a quiet night all sessions may be due at once. The rest waits for the next
                # answer, which the log's end gives twice a second.
                if self.staged_bytes > MAX_STAGED_BYTES:
                    break
        if not self.is_replaying:
            self._bound_replay()
            for session in self.sessions.drop_forgotten():
                self._stage.remove_session(session)

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
        if self._stage.is_empty and not self._pace.is_due(now_ms, self.seen):
            return None
        stage, self._stage = self._stage, Stage()
        self._pace.note(now_ms, self.seen)
        for carried, count in stage.carried.items():
            stage.tally["processor_records_total", (("carried", carried),)] = count
            self.counts.records += count
        duplicates = stage.tally["processor_duplicates_total", ()]
        self.counts.records += duplicates
        if self.counts.duplicates != UNKNOWN:
            self.counts.duplicates += duplicates
        if not self.is_replaying:
            # Before anything more is durable.
            self.counts.settle(self.sessions.open_record_count, self.seen, self._where)
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

    def _feed_records(self, batch: Batch) -> None:
        records = batch.records
        if self.position < self._low:
            records = self._ids.remembered(records, self._low)
        config, before_ms = self._config, self.sessions.log_time_ms
        counter, max_tokens = config.counter, config.policy.max_tokens
        log = columns(records, batch.arrived_at_ms, before_ms, counter, max_tokens)
        keys = keys_of(log.keys)
        # Before anything of the batch is taken in: if it is refused, the state is as before it.
        limit = config.dead_letter_limit
        self._meter = limit.metered(log, keys, self.seen, self._meter, self._where)
        left_out = self._ids.repeated(records, keys.errors)
        if left_out:
            count = sum(it >= self.seen for it in left_out)
            self._stage.tally["processor_duplicates_total", ()] += count
        # An end stands between its session's records, so it is fed by itself.
        start = 0
        for stop in [index for index, value in enumerate(log.values) if value is None]:
            self._feed_stretch(log.part(start, stop), keys, left_out)
            self._feed_end(log.records[stop], log.times_ms[stop + 1])
            start = stop + 1
        self._feed_stretch(log.part(start, len(records)) if start else log, keys, left_out)
        if log.records:
            self._fingerprint = (log.offsets[-1], log.timestamps_ms[-1])
            if self._stage.closed and self._stage.appended_at_ms is None:
                self._stage.appended_at_ms = log.timestamps_ms[0]

    def _feed_stretch(self, stretch: Columns, keys: Keys, left_out: AbstractSet[int]) -> None:
        runs, sessionless, mismatched = grouped(stretch, keys, self._config.policy, left_out)
        if self.is_replaying or sessionless or left_out:
            read = chain.from_iterable(run.records for run in runs)
            self._stage.carried.update(it.carried for it in read if (it.offset or 0) >= self.seen)
        else:
            # All of them, without going back to each: 0.3 µs.
            self._stage.carried.update(stretch.read.carried)
        for record, error in sessionless:
            self._set_aside(record, error)
        if mismatched:
            count = self._mismatches.count([it for it in mismatched if it[0] >= self.seen])
            self._stage.tally["processor_session_mismatches_total", ()] += count
        for chunk in self.sessions.feed(runs, stretch.times_ms[-1]):
            self._stage_chunk(chunk)

    def _feed_end(self, record: LogRecord, at_ms: int) -> None:
        try:
            session = session_of(record.key)
        except RecordError as error:
            self.sessions.pass_by(at_ms)
            self._set_aside(record, error)
            return
        if self._is_of_a_forgotten(session, record.offset):
            self.sessions.pass_by(at_ms)
            return
        if record.offset >= self.seen:
            self.counts.ends += 1
            self._stage.tally["processor_session_ends_total", ()] += 1
        for chunk in self.sessions.end(session, record.offset, at_ms):
            self._stage_chunk(chunk)

    def _is_of_a_forgotten(self, session: str, offset: int) -> bool:
        """Tell whether a replay passes an end that was ignored, of a session that is gone since.

        Any other end of a session that was unknown has made it known, by its final chunk.
        """
        return offset < self.seen and self.sessions.state(session) is None

    def _set_aside(self, record: LogRecord, error: RecordError) -> None:
        # A replay passes dead letters again, but they are out already.
        if record.offset < self.seen:
            return
        self.counts.dead_letters += 1
        message = dead_letter(record, self._config.topic, self._partition, error)
        self._stage.add_dead_letter(message, error.reason)

    def _stage_chunk(self, chunk: Chunk) -> None:
        self.counts.chunked += len(chunk.records)
        span = self._tracing.begin(chunk) if self._tracing is not None else None
        self._stage.add_chunk(chunk, self._encoder, self._omitted, span)

    def _bound_replay(self) -> None:
        """Checkpoint the oldest open sessions until a replay is short enough again."""
        open_record_count = self.sessions.open_record_count
        while self.staged_bytes <= MAX_STAGED_BYTES:
            low = self.sessions.low_water(self.position)
            is_far = self.seen - low.offset > self._config.replay_bound(open_record_count)
            is_old = self.sessions.log_time_ms - low.log_time_ms > self._config.max_replay_ms
            state = self.sessions.checkpoint() if is_far or (is_old and low.log_time_ms) else None
            if state is None:
                return
            self._stage.add_session(state)

    def _entry(self) -> bytes:
        low = self.sessions.low_water(max(self.position, self._low))
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
                meter=self._meter,
            )
        )
