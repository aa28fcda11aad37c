"""Reads one chunk message, strictly and without the worker's code.

A record's ``value`` must come back byte for byte, which parsing and writing anew would not give. So
the JSON decoder is only asked where each value ends, and the text between is cut out.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NoReturn, TypeAlias

DEEPEST_VALUE: Final = 60  # .NET's parser stops at 64
CARRIERS: Final = {"value", "text", "base64", "omitted"}
Reader: TypeAlias = Callable[[str, int], tuple[Any, int]]


class ChunkError(ValueError):
    """A message in ``chunks`` is not a chunk."""


@dataclass(frozen=True, slots=True)
class SeenRecord:
    offset: int
    timestamp_ms: int | None
    token_count: int
    value: bytes | None
    """What the chunk carries; ``None`` when it was omitted as too large."""
    size: int
    sha256: str | None
    """Only of an omitted record."""


@dataclass(frozen=True, slots=True)
class SeenChunk:
    session: str
    t: int
    records: tuple[SeenRecord, ...]
    token_count: int
    token_counter: str
    max_tokens: int
    flush_tokens: int
    over_budget: bool
    flush: str
    final: bool
    partition: int
    previous_digest: str
    digest: str

    def __str__(self) -> str:
        return f"{self.session}/{self.t}"


def read_chunk(data: bytes) -> SeenChunk:
    """Read a chunk from a message's bytes.

    Raises:
        ChunkError: It isn't one line of strict JSON, or a field is missing, doubled, of the wrong
            type or at odds with another field.
    """
    try:
        return _read_chunk(data)
    except (ValueError, RecursionError) as exc:
        message = f"{exc!r} in {data[:120]!r}"
        raise ChunkError(message) from exc


def _read_chunk(data: bytes) -> SeenChunk:
    text = data.decode()
    _check("\n" not in text and "\r" not in text, "a line break")
    chunk, end = _read_object(text, 0, {"records": _read_records})
    _check(end == len(text), "something after the chunk")
    records, source = _field(chunk, "records", tuple), _field(chunk, "source", dict)
    seen = SeenChunk(
        session=_field(chunk, "session", str),
        t=_field(chunk, "t", int),
        records=records,
        token_count=_field(chunk, "token_count", int),
        token_counter=_field(chunk, "token_counter", str),
        max_tokens=_field(chunk, "max_tokens", int),
        flush_tokens=_field(_field(chunk, "policy", dict), "flush_tokens", int),
        over_budget=_field(chunk, "over_budget", bool),
        flush=_field(chunk, "flush", str),
        final=_field(chunk, "final", bool),
        partition=_field(source, "partition", int),
        previous_digest=_field(chunk, "previous_digest", str),
        digest=_field(chunk, "digest", str),
    )
    _check(_field(chunk, "schema_version", int) == 1, "an unknown schema_version")
    _check(seen.final == (seen.flush == "end"), "final without end, or end without final")
    _check(bool(records) or seen.final, "no record, though it isn't final")
    _check(seen.token_count == sum(each.token_count for each in records), "a wrong token_count")
    if records:
        first, last = _field(source, "first_offset", int), _field(source, "last_offset", int)
        _check((first, last) == (records[0].offset, records[-1].offset), "wrong source offsets")
    return seen


def _seen_record(record: dict[str, Any]) -> SeenRecord:
    [carrier] = CARRIERS & record.keys() or _fail("a record without its value")
    offset, token_count = _field(record, "offset", int), _field(record, "token_count", int)
    if carrier == "omitted":
        size, sha256 = _field(record, "bytes", int), _field(record, "sha256", str)
        return SeenRecord(offset, None, token_count, None, size, sha256)
    if carrier == "value":
        value = _field(record, "value", bytes)
    elif carrier == "text":
        value = _field(record, "text", str).encode()
    else:
        value = base64.b64decode(_field(record, "base64", str), validate=True)
    timestamp_ms = _field(record, "timestamp_ms", int)
    return SeenRecord(offset, timestamp_ms, token_count, value, len(value), None)


# Each of these reads what begins at a character, and returns it with the character after it.


def _read_object(text: str, at: int, readers: Mapping[str, Reader]) -> tuple[dict[str, Any], int]:
    """Read an object, with a reader of their own for some members."""
    values: dict[str, Any] = {}
    at = _after(text, at, "{")
    while not text.startswith("}", at):
        if values:
            at = _after(text, at, ",")
        name, at = _read_plain(text, at)
        _check(isinstance(name, str) and name not in values, f"a wrong or doubled name {name!r}")
        at = _after(text, _skip(text, at), ":")
        values[name], end = readers.get(name, _read_plain)(text, at)
        at = _skip(text, end)
    return values, at + 1


def _read_records(text: str, at: int) -> tuple[tuple[SeenRecord, ...], int]:
    records: list[SeenRecord] = []
    at = _after(text, at, "[")
    while not text.startswith("]", at):
        if records:
            at = _after(text, at, ",")
        record, end = _read_object(text, at, {"value": _read_value})
        records.append(_seen_record(record))
        at = _skip(text, end)
    return tuple(records), at + 1


def _read_value(text: str, at: int) -> tuple[bytes, int]:
    """Cut out a spliced value, unless some strict parser would refuse it."""
    value, end = _SPLICED.raw_decode(text, at)
    cut = text[at:end]
    if "\\ud" in cut.lower():
        json.dumps(value, ensure_ascii=False).encode()  # raises if half of a surrogate pair is left
    if cut.count("[") + cut.count("{") > DEEPEST_VALUE:
        _check(_depth(value) <= DEEPEST_VALUE, "a value nested too deep")
    return cut.encode(), end


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level:
        level = [inner for outer in level for inner in _inside(outer)]
        depth += bool(level)
    return depth


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return [None, *value.values()]
    return [None, *value] if isinstance(value, list) else []


def _skip(text: str, at: int) -> int:
    while text.startswith((" ", "\t"), at):
        at += 1
    return at


def _after(text: str, at: int, mark: str) -> int:
    _check(text.startswith(mark, at), f"no {mark!r} at character {at}")
    return _skip(text, at + 1)


# Small checks.


def _field(values: dict[str, Any], name: str, kind: type) -> Any:
    value = values.get(name)
    if type(value) is not kind:  # the message is made only here: values are large
        _fail(f"{name}={str(value)[:80]} where {kind.__name__} belongs")
    return value


def _check(holds: bool, what: str) -> None:  # noqa: FBT001 - an assertion that -O keeps
    if not holds:
        _fail(what)


def _fail(what: str) -> NoReturn:
    raise ChunkError(what)


def _refuse(name: str) -> NoReturn:
    _fail(f"{name}, which is not JSON")


_read_plain: Final[Reader] = json.JSONDecoder(parse_constant=_refuse).raw_decode
# Python refuses integers of more than 4,300 digits, JSON does not; floats have no such limit.
_SPLICED: Final = json.JSONDecoder(parse_constant=_refuse, parse_int=float)
