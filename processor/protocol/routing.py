"""What one opening of a telemetry partition knows: messages in, records of sessions out.

Theory of operation. Nothing is held open: when a batch has been fed, all that it holds is staged,
so after every transaction the position is where the next owner goes on, and there is no replay.
What a format remembers of its stream is written, as far as it changed, in the same transaction as
the records: whoever reads on from the position remembers what we did, and gives the same records.

A null value is the end of its stream: the session that the stream was last in gets its end, and
what was remembered of the stream is forgotten.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from processor.core.errors import ConfigError, NoSessionError, RecordError, TooLargeRecordError
from processor.formats.format import FormatOptions, SessionRecord
from processor.protocol.changelog import PARTITION_KEY, Counts, PartitionEntry, encode_partition
from processor.protocol.dead_letter import dead_letter
from processor.protocol.job import Opened, Pace, Remedies, check_follows
from processor.protocol.loading import AllEntries
from processor.protocol.port import Batch, LogRecord, Message, Transaction
from processor.protocol.stage import Stage, Tally
from processor.protocol.stream_readers import AUTO, StreamReaders
from processor.protocol.streams import Streams

_NAMELESS: Final = (
    "an entry that names no session, beside others that do; name it at its source, or say where it "
    "is with PROCESSOR_SESSION_FIELDS"
)
log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RouterConfig:
    """What every partition of a router has in common.

    Attributes:
        topic: The telemetry topic.
        records_topic: Where records go.
        records_partitions: Its number of partitions.
        partition_of: The partition of it that a session's key belongs to.
        remedies: What a person can do where state and log disagree.
        format: The name of all streams' format, or ``AUTO``.
        options: What a person chose about formats; the session is each stream's own.
        start_at_end: A first start begins at the log's end, not its start.
    """

    topic: str
    records_topic: str
    records_partitions: int
    partition_of: Callable[[bytes], int]
    remedies: Remedies
    format: str = AUTO
    options: FormatOptions = field(default_factory=FormatOptions)
    start_at_end: bool = False

    @property
    def rule(self) -> dict[str, Any]:
        """What decides where a session's records go."""
        return {"records_topic": self.records_topic, "records_partitions": self.records_partitions}

    def check(self, entry: PartitionEntry, where: str) -> None:
        """Return if sessions still go where they went.

        Raises:
            ConfigError: The records topic has another number of partitions now.
        """
        was, now = entry.rule, self.rule
        is_other_topic = was["records_topic"] != now["records_topic"]
        if was["records_partitions"] != now["records_partitions"] and not is_other_topic:
            message = (
                f"{where}: {self.records_topic} had {was['records_partitions']} partitions and now "
                f"has {now['records_partitions']}: sessions would go on in other partitions. Route "
                "to a new topic with PROCESSOR_RECORDS_TOPIC, or restore the old one"
            )
            raise ConfigError(message)

    def new_changelog(self) -> AllEntries:
        """Return what the changelog is to be read into."""
        return AllEntries()

    def restore(self, opened: Opened[AllEntries]) -> "RouterState":
        """Return the state that the last owner left."""
        return RouterState(self, opened)


class RouterState:
    """The streams of one partition and what is staged for the next transaction.

    Args:
        config: What all partitions have in common.
        opened: What is known of the partition.

    Attributes:
        position: The offset fed next.
        is_behind: There is more in the log than we were fed.
        as_of_ms: See ``JobState.as_of_ms``.
        staged_bytes: Bytes of the records staged.
        counts: What became of the messages: ``records`` are those written.
    """

    def __init__(self, config: RouterConfig, opened: Opened[AllEntries]) -> None:
        self._config = config
        self._opened = opened
        self._streams = Streams(opened.changelog.entries, opened.where, config.remedies.lost)
        self._readers = StreamReaders(self._streams, config.format, config.options)
        self._pace = Pace(opened.entry.seen)
        self._fingerprint = opened.entry.fingerprint
        self._has_warned = False
        self._empty_stage()
        self.position = opened.entry.seen
        self.is_behind = True
        self.as_of_ms = 0
        was = opened.entry.counts
        self.counts = Counts(records=was.records, dead_letters=was.dead_letters, ends=was.ends)

    @property
    def seen(self) -> int:
        """First offset never processed: nothing is replayed."""
        return self.position

    def feed(self, batch: Batch) -> None:
        """Stage what a batch holds.

        Raises:
            StateError: The batch does not start at our position.
        """
        check_follows(batch, self.position, self._config.topic)
        for record in batch.records:
            self._feed_one(record)
        if batch.records:
            last = batch.records[-1]
            self._fingerprint = (last.offset, last.timestamp)
            self.as_of_ms = max(self.as_of_ms, last.timestamp)
        self.position = batch.next_offset
        head = batch.head
        self.is_behind = head is None or self.position < head.high_watermark
        if not self.is_behind:
            self.as_of_ms = max(self.as_of_ms, batch.arrived_at_ms)

    def take(self, now_ms: int) -> tuple[Transaction, Stage] | None:
        """Cut off what is staged; see ``JobState.take``.

        Args:
            now_ms: The time (Unix milliseconds), to commit a moved position now and then.
        """
        is_empty = not (self._output or self._dead_letters or self._streams.has_changes)
        if is_empty and not self._pace.is_due(now_ms, self.position):
            return None
        self._pace.note(now_ms, self.position)
        entries = {**self._streams.take_changes(), PARTITION_KEY: self._entry()}
        transaction = Transaction(self._output, entries, self._dead_letters, self.position)
        told = Stage(tally=self._tally)
        self._empty_stage()
        return transaction, told

    def _empty_stage(self) -> None:
        self._output: list[Message] = []
        self._dead_letters: list[Message] = []
        self._tally = Tally()
        self.staged_bytes = 0

    def _feed_one(self, record: LogRecord) -> None:
        name = record.key or None
        if name is None:
            self._note_unkeyed(record)
        try:
            if record.value is None:
                self._end(name, record)
            else:
                self._route(name, record, record.value)
        except RecordError as error:
            self._set_aside(record, error)

    def _route(self, name: bytes | None, record: LogRecord, value: bytes) -> None:
        made = self._readers.read(name, value)
        if record.offset in self._opened.omitted:
            message = f"{self._config.records_topic} refuses what it holds as too large"
            raise TooLargeRecordError(message)
        for it in made.records:
            if it.session is None:
                self._set_aside(record, NoSessionError(_NAMELESS), it)
                continue
            # A record that is the message keeps what its producer said about it.
            kept = _others(record, it) if it.value == value else ()
            self._send(it.session, it.value, [*kept, *it.headers], record)
            self.counts.records += 1
            self._tally["processor_routed_records_total", (("format", made.format),)] += 1

    def _end(self, name: bytes | None, record: LogRecord) -> None:
        session = self._readers.end(name)
        self.counts.ends += 1
        self._tally["processor_session_ends_total", ()] += 1
        self._send(session, None, record.headers, record)

    def _send(
        self,
        session: str,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]],
        origin: LogRecord,
    ) -> None:
        key = session.encode()
        partition = self._config.partition_of(key)
        message = Message(key, value, headers, lone_offset=origin.offset, partition=partition)
        self._output.append(message)
        self.staged_bytes += len(value or b"")

    def _set_aside(
        self, record: LogRecord, error: RecordError, part: SessionRecord | None = None
    ) -> None:
        """Make ``record`` a dead letter, or the one of its parts that it is about."""
        letter = dead_letter(record, self._config.topic, self._opened.number, error)
        if part is not None:
            headers = [*letter.headers, *part.headers]
            letter = letter._replace(value=part.value, headers=headers)
        self._dead_letters.append(letter)
        self.staged_bytes += len(letter.value or b"")
        self.counts.dead_letters += 1
        self._tally["processor_dead_letters_total", (("reason", error.reason),)] += 1

    def _note_unkeyed(self, record: LogRecord) -> None:
        count = self._opened.entry.partition_count
        if count == 1:
            return
        self._tally["processor_unkeyed_telemetry_total", ()] += 1
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "a message without a key in a topic of several partitions: what is spread over "
                "them has no known order, and repeats are not seen. Give the topic one partition, "
                "or the messages a key; PROCESSOR_DEDUPLICATE_RECORDS drops repeats",
                extra={
                    "topic": self._config.topic,
                    "partition": self._opened.number,
                    "offset": record.offset,
                    "partition_count": count,
                },
            )

    def _entry(self) -> bytes:
        return encode_partition(
            PartitionEntry(
                low=self.position,
                log_time_ms=0,
                seen=self.position,
                partition_count=self._opened.entry.partition_count,
                rule=self._config.rule,
                fingerprint=self._fingerprint,
                counts=self.counts,
                topic=self._config.topic,
            )
        )


def _others(record: LogRecord, made: SessionRecord) -> list[tuple[str, bytes]]:
    """Return the headers of ``record`` that ``made`` does not have itself."""
    own = {name for name, _ in made.headers}
    return [it for it in record.headers if it[0] not in own]
