"""A chunk as its readers see it: the models of its JSON, and a line back into them.

By msgspec: a parser that makes objects of a record's ``value`` can't give its bytes back.
"""

import base64
from typing import Any, Final

import msgspec

from processor.core.errors import StateError
from processor.core.policy import ChunkPolicy
from processor.core.records import Headers

SCHEMA_VERSION: Final = 1


class WireBytes(msgspec.Struct, frozen=True):
    """A header's value that is not UTF-8."""

    encoded: str = msgspec.field(name="base64")


class WireRecord(msgspec.Struct, frozen=True):
    """A record as a chunk carries it: by one of ``value``, ``text``, ``base64`` and ``omitted``."""

    offset: int | None
    token_count: int
    timestamp_ms: int | None = None
    # msgspec knows no optional Raw; an empty one stands for none.
    value: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    text: str | None = None
    encoded: str | None = msgspec.field(name="base64", default=None)
    omitted: str | None = None
    size_bytes: int | None = msgspec.field(name="bytes", default=None)
    sha256: str | None = None
    headers: dict[str, str | WireBytes | None] = {}

    @property
    def value_bytes(self) -> bytes | None:
        """The record's bytes as they came in; ``None`` where they were too large to carry."""
        if len(self.value):
            return bytes(self.value)
        if self.text is not None:
            return self.text.encode()
        return None if self.encoded is None else base64.b64decode(self.encoded, validate=True)

    @property
    def header_bytes(self) -> Headers:
        """The headers that go along, their values as they came in.

        Raises:
            ValueError: One is no base64.
        """
        return tuple((name, _header_value(it)) for name, it in self.headers.items())


class WireSource(msgspec.Struct, frozen=True):
    """Where a chunk's records stand; the offsets are null in an empty final chunk."""

    topic: str
    partition: int
    first_offset: int | None
    last_offset: int | None


class WirePolicy(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rule a chunk was cut by; what has a default here is not written where it is off."""

    flush_tokens: int
    idle_s: float
    max_age_s: float
    max_chunk_bytes: int
    max_chunk_records: int
    carry_headers: tuple[str, ...] = ()
    deduplicate_records: int = 0
    forget_ended_after_s: float = 0

    @classmethod
    def of(cls, policy: ChunkPolicy) -> "WirePolicy":
        """Return ``policy`` as chunks name it."""
        return cls(**{it: _plain(getattr(policy, it)) for it in cls.__struct_fields__})

    def rule(self, token_counter: str, max_tokens: int) -> dict[str, Any]:
        """Return all that chunk boundaries depend on, by name, as the changelog keeps it."""
        named: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self))
        return {"token_counter": token_counter, "max_tokens": max_tokens, **named}


class WireChunk(msgspec.Struct, frozen=True):
    """A chunk as its readers see it; a field that it does not know is left aside."""

    schema_version: int
    session: str
    t: int
    records: list[WireRecord]
    token_count: int
    token_counter: str
    max_tokens: int
    over_budget: bool
    policy: WirePolicy
    flush: str
    final: bool
    source: WireSource
    previous_digest: str
    digest: str
    clock: bool = False


_decode: Final = msgspec.json.Decoder(WireChunk).decode


def decode_chunk(line: bytes) -> WireChunk:
    """Return the chunk in ``line``.

    Raises:
        StateError: The line is no chunk, or of a newer schema than this.
    """
    try:
        chunk = _decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"not a chunk: {error}"
        raise StateError(message) from error
    if chunk.schema_version != SCHEMA_VERSION:
        message = (
            f"chunk {chunk.session}/{chunk.t} has schema version {chunk.schema_version}, this "
            f"reads {SCHEMA_VERSION}; update the reader"
        )
        raise StateError(message)
    return chunk


def _plain(value: Any) -> Any:  # noqa: ANN401 - a number or names of headers
    """Return whole seconds as an integer, so that 300 stands as ``300``."""
    return int(value) if isinstance(value, float) and value == int(value) else value


def _header_value(value: str | WireBytes | None) -> bytes | None:
    if isinstance(value, WireBytes):
        return base64.b64decode(value.encoded, validate=True)
    return None if value is None else value.encode()
