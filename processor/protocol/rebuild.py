"""A partition's state once more, from what is out: for when its changelog is lost.

Theory of operation. A session's last chunk tells where it stood: ``t``, digest, the offset behind
its last record, and whether it had ended. (An end has no offset in a chunk; replayed, it is the
second of two with nothing between, which is ignored.) What a session has in the log behind that is
in no chunk: it was open, or is not read yet. So ``low``, where a replay must start, is the first
message of the log that some session still waits for: a record behind its last chunk, or an end
where the last chunk is not final. Log time is the largest timestamp before it, as ever. Records
that the lost changelog held as checkpoints are in the log too, or the rebuilding is refused.

``seen``, below which nothing is counted or dead-lettered again, is the group's offset: the last
transaction wrote it together with the entry that is lost. It is not believed where the topics know
better. Chunks and dead letters that are out prove that all before them was processed: an offset
below has been moved back, and where there is none, because the group was deleted or its offsets
have expired, this is the value. And a record without a session behind the last dead letter was not
processed, whatever the offset says: its letter would be younger than itself, so retention can't
have taken the letter and left the record. Had we passed it, it would be lost; so ``seen`` is its
offset, unless it was a dead letter once, whose own letter can't be told from its first one.

Counts begin anew with what the topics hold, so that they add up: records in chunks and open ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from processor.core.errors import ConfigError, RecordError, StateError
from processor.core.session_state import SessionState
from processor.core.sessions import LowWater
from processor.headers import number_in
from processor.protocol.changelog import (
    PARTITION_KEY,
    Counts,
    PartitionEntry,
    encode_partition,
    encode_session,
)
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.dead_letter import OFFSET, PARTITION, TOPIC, session_of
from processor.protocol.port import LogRecord, Survey
from processor.protocol.record_ids import RecordIds
from processor.protocol.runs import log_times_ms
from processor.wire_models import WireChunk, decode_chunk


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What the changelog of a partition should hold.

    Attributes:
        entry: The partition's own entry.
        states: Every session that has a chunk.
        open_record_count: Records that were processed and are in no chunk.
    """

    entry: PartitionEntry
    states: Mapping[str, SessionState]
    open_record_count: int

    @property
    def entries(self) -> dict[bytes, bytes]:
        """All of it as the changelog's entries, by key."""
        entries = {name.encode(): encode_session(it) for name, it in self.states.items()}
        return {**entries, PARTITION_KEY: encode_partition(self.entry)}


def check_nothing_deleted(survey: Survey, chunks_start: int, where: str) -> None:
    """Return if nothing is deleted that a rebuilding could need.

    Args:
        survey: The log.
        chunks_start: First offset that is left in the partition of the chunks topic.
        where: Topic and partition, for the error.

    Raises:
        StateError: Retention has deleted chunks or records; what was in them is not known.
    """
    if chunks_start or survey.log_start:
        message = (
            f"{where}: retention has deleted the records before offset {survey.log_start} and the "
            f"chunks before {chunks_start}. A session whose chunks are all gone would start again "
            "at t=1, and a record that is gone and was in no chunk yet would be lost without a "
            "trace. If you know that there are none, go on with --accept-deleted; else start over "
            "with `processor state reset`"
        )
        raise StateError(message)


class Rebuild:
    """Makes the state of one partition out of its topics: chunks, then dead letters, then records.

    Args:
        config: What all partitions have in common.
        partition: Its number.
        survey: The log and the group.
        chunks_start: First offset that is left in the partition of the chunks topic.

    Raises:
        ConfigError: The app began at the log's end: what it left out stands nowhere.
    """

    def __init__(
        self, config: ChunkerConfig, partition: int, survey: Survey, chunks_start: int
    ) -> None:
        self._topic = config.topic
        self._partition = partition
        self._survey = survey
        self._chunks_start = chunks_start
        self._rule = config.rule
        self._states: dict[str, SessionState] = {}
        self._waiting: set[str] = set()
        self._processed = survey.log_start
        self._counts = Counts()
        self._is_forgetting = False
        self._low: LowWater | None = None
        self._log_time_ms = 0
        self._fingerprint: tuple[int, int] | None = None
        self._seen: int | None = None
        self._ids: RecordIds | None = None
        if config.start_at_end:
            message = (
                f"{self._where}: with KAFKA_AUTO_OFFSET_RESET=latest the records before the first "
                "start were left out, and where that was stands nowhere; set it to earliest to "
                "have those of them chunked that no later record of their session is"
            )
            raise ConfigError(message)

    @property
    def _where(self) -> str:
        return f"{self._topic}[{self._partition}]"

    def take_chunk(self, value: bytes, offset: int) -> None:
        """Take the next message of the chunks topic.

        Raises:
            StateError: It is not the next chunk of its session; ``processor verify`` tells more.
        """
        chunk = decode_chunk(value)
        state, source = self._states.get(chunk.session), chunk.source
        if (source.topic, source.partition) != (self._topic, self._partition):
            raise self._unfit(chunk, offset, f"comes from {source.topic}[{source.partition}]")
        try:
            previous, digest = map(bytes.fromhex, (chunk.previous_digest, chunk.digest))
        except ValueError as error:
            raise self._unfit(chunk, offset, "has a digest that is none") from error
        if state is None and self._chunks_start and chunk.t > 1:
            state = SessionState(chunk.session, chunk.t - 1, previous)
        elif state is None:
            state = SessionState.new(chunk.session)
        self._is_forgetting |= chunk.policy.forget_ended_after_s > 0
        if state.ended and chunk.t == 1 and self._is_forgetting:
            state = state.anew()
        if (chunk.t, previous) != (state.t + 1, state.digest):
            raise self._unfit(chunk, offset, f"does not follow t={state.t} of its session")
        next_offset = state.next_offset
        if source.last_offset is not None:
            next_offset = source.last_offset + 1
            self._processed = max(self._processed, next_offset)
        self._states[chunk.session] = SessionState(
            chunk.session, chunk.t, digest, next_offset, chunk.final
        )
        self._counts.chunked += len(chunk.records)
        self._rule = chunk.policy.rule(chunk.token_counter, chunk.max_tokens)

    def take_letter(self, letter: LogRecord) -> None:
        """Take the next message of the dead-letter topic; others than this partition's are not."""
        headers = dict(letter.headers)
        origin = (headers.get(TOPIC), headers.get(PARTITION))
        offset = number_in(headers.get(OFFSET))
        if origin == (self._topic.encode(), b"%d" % self._partition) and offset is not None:
            self._counts.dead_letters += 1
            self._processed = max(self._processed, offset + 1)

    @property
    def seen(self) -> int:
        """The first offset never processed, as far as is known before the log is read.

        Raises:
            StateError: The log ends before it.
        """
        if self._seen is None:
            if self._is_forgetting and self._survey.committed is None:
                message = (
                    f"{self._where}: sessions are forgotten after their end here, and without an "
                    "offset of the group nothing tells which ends have been processed; set the "
                    "group's offset behind the last record that was, or start over with "
                    "`processor state reset`"
                )
                raise StateError(message)
            self._seen = max(self._processed, self._survey.committed or 0)
            if self._seen > self._survey.stable_end:
                message = (
                    f"{self._where}: processed up to {self._seen}, but the log ends at "
                    f"{self._survey.stable_end}; was the topic deleted and created again? Start "
                    "over with `processor state reset`"
                )
                raise StateError(message)
        return self._seen

    def take_records(self, records: Sequence[LogRecord], arrived_at_ms: int) -> bool:
        """Take the next records of the log, from its start on, and return if more are needed.

        Args:
            records: The records.
            arrived_at_ms: The time now, as in ``log_times_ms``.
        """
        # Every chunk is read by now, and the last one tells of the rule.
        self._ids = self._ids or RecordIds(self._rule.get("deduplicate_records", 0))
        timestamps_ms = [it.timestamp for it in records]
        times_ms = log_times_ms(records, timestamps_ms, arrived_at_ms, self._log_time_ms)
        for record, before_ms, at_ms in zip(records, times_ms, times_ms[1:], strict=False):
            if record.offset < self.seen and self._is_unprocessed(record):
                self._seen = record.offset
            if record.offset >= self.seen:
                return False
            if not self._ids.is_repeated(record):
                self._take_record(record, before_ms, at_ms)
            elif _session(record) is not None:
                self._counts.duplicates += 1
            self._log_time_ms = at_ms
            self._fingerprint = (record.offset, record.timestamp)
        return True

    def finish(self) -> Rebuilt:
        """Return the state, once the log is read."""
        low = self._low or LowWater(self.seen, self._log_time_ms)
        open_record_count = self._counts.records
        self._counts.records += self._counts.chunked + self._counts.duplicates
        entry = PartitionEntry(
            low=low.offset,
            log_time_ms=low.log_time_ms,
            seen=self.seen,
            partition_count=self._survey.partition_count,
            rule=self._rule,
            fingerprint=self._fingerprint,
            counts=self._counts,
            topic=self._topic,
        )
        return Rebuilt(entry, self._states, open_record_count)

    def _is_unprocessed(self, record: LogRecord) -> bool:
        """Tell whether a record behind every chunk and dead letter should have a dead letter."""
        if record.offset < self._processed or _session(record) is not None:
            return False
        return OFFSET not in dict(record.headers)

    def _take_record(self, record: LogRecord, before_ms: int, at_ms: int) -> None:
        session = _session(record)
        if session is None:
            return
        is_end = record.value is None
        self._counts.ends += is_end
        state = self._states.get(session)
        if state is not None and record.offset < state.next_offset:
            return
        if is_end and state is not None and state.ended and session not in self._waiting:
            # As the accumulator: an end that comes late enough is one of the next session.
            forget_ms = round(1000 * self._rule.get("forget_ended_after_s", 0))
            if not state.last_at_ms or 0 < forget_ms < at_ms - state.last_at_ms:
                self._states[session] = replace(state, last_at_ms=at_ms)
            return
        self._waiting.add(session)
        self._counts.records += not is_end
        if self._low is None:
            self._low = LowWater(record.offset, before_ms)

    def _unfit(self, chunk: WireChunk, offset: int, what: str) -> StateError:
        return StateError(
            f"the chunk at offset {offset} for {self._where}, session {chunk.session!r}, "
            f"t={chunk.t}, {what}; nothing is rebuilt from chunks that are in doubt: run "
            "`processor verify`, or start over with `processor state reset`"
        )


def _session(record: LogRecord) -> str | None:
    try:
        return session_of(record.key)
    except RecordError:
        return None
