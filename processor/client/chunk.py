"""A chunk as its readers have it: records to the byte, as text, and as messages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from processor.core.errors import StateError
from processor.formats import said_of
from processor.formats.fields import EVENT_TIME
from processor.formats.json_line import JsonLine
from processor.wire_models import WireChunk, WireRecord, decode_chunk


class Delivered(Protocol):
    """What is read of a Kafka message."""

    @property
    def topic(self) -> str:
        """Where it stands."""
        ...

    @property
    def partition(self) -> int:
        """Likewise."""
        ...

    @property
    def offset(self) -> int:
        """Likewise."""
        ...

    @property
    def key(self) -> bytes | None:
        """The session."""
        ...

    @property
    def value(self) -> bytes | None:
        """The chunk."""
        ...


class Position(NamedTuple):
    """Where a reader stands in a session: behind this chunk.

    All of it is JSON; keep it together with what you made of the chunk.

    Attributes:
        t: Index of the chunk.
        digest: Its digest, 64 hex digits.
        partition: Where it stands in the topic of chunks.
        offset: Likewise.
        final: An end of session closed it.
    """

    t: int
    digest: str
    partition: int
    offset: int
    final: bool


class Message(NamedTuple):
    """What a record says, where its format is known.

    Attributes:
        role: ``user``, ``assistant``, ``tool``, ``system``, or what else the source calls it.
        content: What was said; a tool's call as its name and its arguments in JSON. Not what a
            model only thought, and no images.
        time: When, as the source tells it, else when the record came into the log; has a zone.
    """

    role: str
    content: str
    time: datetime | None


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a chunk.

    Attributes:
        value: Its bytes as they came in; ``None`` where they are too large for any chunk: they
            stand in the records topic, at ``offset``.
        size_bytes: How many they are.
        token_count: Their tokens.
        offset: Position in the records topic; ``None`` in a chunk made of a file.
        timestamp_ms: The log's own time (Unix milliseconds), where known.
        headers: Headers that chunks carry (``PROCESSOR_CARRY_HEADERS``).
    """

    value: bytes | None
    size_bytes: int
    token_count: int
    offset: int | None
    timestamp_ms: int | None
    headers: Mapping[str, bytes | None]

    def text(self) -> str:
        """Return the bytes as text; what isn't UTF-8 is replaced by U+FFFD."""
        if self.value is None:
            return f"[a record of {self.size_bytes} bytes, too large for a chunk]"
        return self.value.decode("utf-8", "replace")

    def message(self) -> Message | None:
        """Return what the record says; ``None`` where nothing is said or its format isn't known."""
        line = JsonLine(self.value or b"")
        said = said_of(line)
        if said is None or not said.content.strip():
            return None
        return Message(said.role, _whole(said.content), self._time(line))

    def _time(self, line: JsonLine) -> datetime | None:
        """Return the source's time, else the log's."""
        told = (self.headers.get(EVENT_TIME) or b"").decode("utf-8", "replace")
        for text in (told, line.text("timestamp")):
            if text and (time := _parsed(text)):
                return time
        if self.timestamp_ms is None:
            return None
        return datetime.fromtimestamp(self.timestamp_ms / 1000, UTC)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole records of one session, in order.

    Attributes:
        session: The session's key.
        t: Index in the session, contiguous from 1.
        records: The records; none only in a final chunk that marks an end by itself.
        token_count: Their tokens together.
        over_budget: It is one record above the budget.
        flush: Why it closed.
        final: An end of session closed it; records after it go on with the next ``t``.
        previous_digest: Digest of the chunk before, 64 hex digits.
        digest: This chunk's, over its session's records so far.
        partition: Where it stands in the topic of chunks, and its records in theirs.
        offset: Its offset there.
        line: The message itself, one line of JSON; ``processor schema`` says what it holds.
    """

    session: str
    t: int
    records: tuple[Record, ...]
    token_count: int
    over_budget: bool
    flush: str
    final: bool
    previous_digest: str
    digest: str
    partition: int
    offset: int
    line: bytes

    @property
    def position(self) -> Position:
        """Where a reader stands that is done with this chunk."""
        return Position(self.t, self.digest, self.partition, self.offset, self.final)

    def text(self) -> str:
        """Return the records as text, one below the other."""
        return "\n".join(it.text() for it in self.records)

    def messages(self) -> list[Message]:
        """Return what the records say, where their format is known, in order."""
        return [said for it in self.records if (said := it.message()) is not None]


def decode_message(message: Delivered) -> WireChunk:
    """Return the chunk in a message.

    Raises:
        StateError: It holds none, or one of a newer schema.
    """
    try:
        return decode_chunk(message.value or b"")
    except StateError as error:
        msg = f"{message.topic}[{message.partition}]@{message.offset}: {error}"
        raise StateError(msg) from error


def chunk_of(message: Delivered) -> Chunk:
    """Return the chunk in a message as its readers have it.

    Raises:
        StateError: It holds none, or one of a newer schema.
    """
    wire = decode_message(message)
    try:
        records = tuple(map(_record, wire.records))
    except ValueError as error:
        msg = f"{message.topic}[{message.partition}]@{message.offset}: not a chunk: {error}"
        raise StateError(msg) from error
    return Chunk(
        wire.session,
        wire.t,
        records,
        wire.token_count,
        wire.over_budget,
        wire.flush,
        wire.final,
        wire.previous_digest,
        wire.digest,
        message.partition,
        message.offset,
        message.value or b"",
    )


def _record(wire: WireRecord) -> Record:
    value = wire.value_bytes
    size = len(value) if value is not None else wire.size_bytes
    if size is None or (value is None) != (wire.omitted is not None):
        msg = "a record without its value"
        raise ValueError(msg)
    headers = dict(wire.header_bytes)
    return Record(value, size, wire.token_count, wire.offset, wire.timestamp_ms, headers)


def _whole(text: str) -> str:
    """Return a text that can be written as UTF-8: halves of characters are replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _parsed(text: str) -> datetime | None:
    """Return a time with a zone; ``None`` for any other text."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo else None
