"""The few things that the partition protocol asks of a broker, as values and one interface."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from processor.core.errors import OwnershipError, ProcessorError


class LogRecord(Protocol):
    """A record as a Kafka client gives it, its bytes untouched."""

    @property
    def offset(self) -> int: ...  # noqa: D102 - the names say it
    @property
    def timestamp(self) -> int: ...  # noqa: D102
    @property
    def timestamp_type(self) -> int: ...  # noqa: D102
    @property
    def key(self) -> bytes | None: ...  # noqa: D102
    @property
    def value(self) -> bytes | None: ...  # noqa: D102
    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...  # noqa: D102


class Head(NamedTuple):
    """The end of the log as one answer of the broker tells it.

    Attributes:
        asked_at_ms: The clock before the request was sent, less a grace for clock skew.
        high_watermark: The first offset that did not exist when the broker answered. Not the
            last stable offset: an open transaction may hide an earlier record.
    """

    asked_at_ms: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class Batch:
    """What one fetch brought for one partition.

    Attributes:
        partition: Its partition of the input topic.
        incarnation: Which opening of the partition asked for it.
        first_offset: Fetch position before it.
        next_offset: Fetch position after it; past control records, which are never delivered.
        records: The records between the two, in order.
        arrived_at_ms: The clock when it was taken.
        head: The end of the log, where this batch is all that the broker had.
    """

    partition: int
    incarnation: int
    first_offset: int
    next_offset: int
    records: Sequence[LogRecord]
    arrived_at_ms: int
    head: Head | None = None


class Message(NamedTuple):
    """A message of the output or the dead-letter topic.

    Attributes:
        lone_offset: Offset of the one record that it is made of, for when the topic refuses it.
        partition: Where it goes; ``None`` for the number of the input's own.
    """

    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]]
    timestamp_ms: int | None = None
    lone_offset: int | None = None
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Transaction:
    """All that one commit writes: it lands whole or not at all."""

    output: Sequence[Message]
    entries: Mapping[bytes, bytes | None]
    dead_letters: Sequence[Message]
    next_offset: int


@dataclass(frozen=True, slots=True)
class Survey:
    """The world as the broker tells it while a partition opens.

    Attributes:
        partition_count: Partitions of the input topic.
        log_start: First offset that still exists.
        stable_end: Last stable offset: where a reader of committed records stops.
        committed: The group's committed offset, a hint only; ``None`` if there is none.
        timestamps: Of the offsets asked for, those between log start and stable end: the
            timestamp of the record there, ``None`` if there is no record.
        changelog_start: First offset of the changelog that still exists; compaction leaves it at 0.
        has_output: There is output, although the group has no offset.
    """

    partition_count: int
    log_start: int
    stable_end: int
    committed: int | None
    timestamps: Mapping[int, int | None] = field(default_factory=dict)
    changelog_start: int = 0
    has_output: bool = False


class TooLargeError(ProcessorError):
    """The output topic refuses what one record became.

    Attributes:
        offset: The record's.
    """

    def __init__(self, offset: int) -> None:
        super().__init__(f"the output topic refuses the record at offset {offset} as too large")
        self.offset = offset


class ResentCommitError(OwnershipError):
    """The client asked for the same commit more than once.

    A late copy of the request could commit the *next* transaction half-written, so there must
    be no next one from this producer.
    """


#: An entry of the changelog: its key, and its value or ``None`` where the key is deleted.
Entry = tuple[bytes, bytes | None]


class EntryTaker(Protocol):
    """What a changelog is read into."""

    def take(self, entries: Iterable[Entry]) -> None:
        """Take the next entries of the log, in its order: the latest of a key counts."""
        ...


class PartitionBroker(Protocol):
    """One input partition's side of a broker. Every method raises errors of our tree."""

    async def fence(self) -> None:
        """Become the only writer.

        Every older owner is refused from now on, and its open transaction is resolved.
        """
        ...

    async def read_changelog(self, taker: EntryTaker) -> None:
        """Hand every committed entry to ``taker``, up to the high watermark as of now."""
        ...

    async def survey(self, offsets: Sequence[int]) -> Survey:
        """Look at the log and the group; ``offsets`` are records whose timestamps to find."""
        ...

    async def seek(self, offset: int, incarnation: int) -> None:
        """Fetch from ``offset`` on, every batch stamped with ``incarnation``."""
        ...

    async def commit(self, transaction: Transaction) -> None:
        """Write ``transaction`` and the group's offset; returns once it is durable.

        Raises:
            TooLargeError: What one record became is refused; nothing is written.
            FencedError: A newer epoch exists; nothing is written.
            ResentCommitError: It may be written; this producer must not go on.
            UnreachableError: No answer; it may be written.
        """
        ...

    async def owns(self) -> bool:
        """Ask the group whether we are a member of its present generation."""
        ...

    async def discard(self) -> None:
        """Let go of the producer, in bounded time, whatever state it is in."""
        ...
