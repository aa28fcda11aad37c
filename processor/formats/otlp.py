"""OTLP logs and spans, from JSON or protobuf, as entries: what stands around each, and its values.

Both encodings become the dicts of the JSON one, so that the same telemetry gives the same record
whichever way it came.

Source:
    OTLP 1.x, "JSON Protobuf Encoding": keys in lowerCamelCase, ids in hex, enums as numbers, 64-bit
    integers as texts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from processor.core.errors import FormatError
from processor.formats.strict_json import UNREADABLE, parse

Json = dict[str, Any]
#: Makes the dicts of JSON of an export in protobuf, or raises FormatError.
FromProtobuf = Callable[[bytes], Json]

_NANOS: Final = 10**9
#: What protobuf leaves out; JSON may write it.
_EMPTY: Final[tuple[object, ...]] = (None, "", 0, [], {})


class Signal(Enum):
    """Kinds of telemetry read, by the JSON keys of their levels."""

    LOGS = ("resourceLogs", "scopeLogs", "logRecords")
    SPANS = ("resourceSpans", "scopeSpans", "spans")


@dataclass(frozen=True, slots=True)
class Entry:
    """A log record or a span.

    Attributes:
        data: As it came, in the form of OTLP's JSON.
        export: An export of its own, with its scope and its resource.
        places: Attributes as plain values: its own, its scope's, its resource's.
    """

    data: Json
    export: Json
    places: tuple[Json, Json, Json]

    @property
    def attributes(self) -> Json:
        """Its own attributes."""
        return self.places[0]

    def attribute(self, name: str) -> object:
        """Return an attribute: its own, else its scope's, else its resource's; None for nothing."""
        return next((it[name] for it in self.places if it.get(name) is not None), None)

    def time(self) -> str | None:
        """Return when it was made (a span: ended), RFC 3339 in UTC; None where it doesn't say."""
        keys = ("timeUnixNano", "endTimeUnixNano", "observedTimeUnixNano", "startTimeUnixNano")
        return next((text for key in keys if (text := _time(self.data.get(key)))), None)

    def plain(self) -> Json:
        """Return it with plain values in place of OTLP's typed ones, and without empty fields."""
        return _plain_fields(self.data)


def read_entries(value: bytes, from_protobuf: FromProtobuf) -> list[Entry]:
    """Return the log records or spans of one export, in its order.

    Args:
        value: The export, in JSON or protobuf.
        from_protobuf: Reads what isn't JSON.

    Raises:
        FormatError: It is neither logs nor spans.
        RecursionError: It is nested too deep.
    """
    document = _json_document(value)
    return list(_entries(from_protobuf(value) if document is None else document))


def _json_document(value: bytes) -> Json | None:
    """Return the JSON of an export; None for protobuf.

    Protobuf can't begin with a brace: that would be field 15 as a group, which no export has. But a
    line feed before one can be protobuf's field 1, so then only the whole tells.
    """
    if not value[:64].lstrip(b" \t\r\n\xef\xbb\xbf").startswith(b"{"):
        return None
    try:
        document: Json = parse(value.decode("utf-8-sig"))
    except UNREADABLE as error:
        if value.startswith(b"\n"):
            return None
        message = f"not OTLP: JSON that can't be read ({error}); a value must be one whole export"
        raise FormatError(message) from error
    if not any(signal.value[0] in document for signal in Signal):
        message = "not OTLP: JSON without resourceLogs or resourceSpans; metrics are not read"
        raise FormatError(message)
    return document


def _entries(document: Json) -> Iterator[Entry]:
    for signal in Signal:
        outer, middle, inner = signal.value
        for around in _dicts(document.get(outer)):
            resource = _attributes_of(around.get("resource"))
            for within in _dicts(around.get(middle)):
                scope = _attributes_of(within.get("scope"))
                for data in _dicts(within.get(inner)):
                    export = {outer: [around | {middle: [within | {inner: [data]}]}]}
                    own = attributes(data.get("attributes"))
                    yield Entry(data, export, (own, scope, resource))


def _dicts(found: object) -> list[Json]:
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(it, dict) for it in found):
        message = "not OTLP: something else where a list of objects is expected"
        raise FormatError(message)
    return found


def _attributes_of(found: object) -> Json:
    return attributes(found.get("attributes")) if isinstance(found, dict) else {}


def attributes(found: object) -> Json:
    """Return attributes as a dict of plain values; of two with one name the first."""
    named: Json = {}
    for it in found if isinstance(found, list) else ():
        if isinstance(it, dict) and isinstance(it.get("key"), str):
            named.setdefault(it["key"], plain(it.get("value")))
    return named


def plain(value: object) -> Any:  # noqa: ANN401  # AnyValue is anything
    """Return what an AnyValue holds: bytes stay in base64; what is no AnyValue stays as it is."""
    if not isinstance(value, dict) or len(value) > 1:
        return value
    for kind, held in value.items():
        make = _KINDS.get(kind)
        return value if make is None else make(held)
    return None


def _integer(held: object) -> object:
    try:
        return int(held) if isinstance(held, str) else held
    except ValueError:
        return held


def _double(held: object) -> object:
    # JSON may write 5.0 as 5.
    try:
        return float(held) if isinstance(held, int) else held
    except OverflowError:
        return held


def _array(held: object) -> object:
    if not isinstance(held, dict) or not isinstance(held.get("values", []), list):
        return held
    return [plain(it) for it in held.get("values", [])]


def _map(held: object) -> object:
    return _plain_attributes(held.get("values", [])) if isinstance(held, dict) else held


def _same(held: object) -> object:
    return held


_KINDS: Final[dict[str, Callable[[object], object]]] = {
    "stringValue": _same,
    "boolValue": _same,
    "intValue": _integer,
    "doubleValue": _double,
    "bytesValue": _same,
    "arrayValue": _array,
    "kvlistValue": _map,
}


def _plain_attributes(found: object) -> object:
    """Return attributes as a dict where that loses nothing, else as they are."""
    if not isinstance(found, list):
        return found
    named = attributes(found)
    return named if len(named) == len(found) else found


def _plain_fields(data: Json) -> Json:
    made: Json = {}
    for key, value in data.items():
        is_time = key.endswith("UnixNano")
        if value in _EMPTY or (is_time and value == "0"):
            continue
        if key == "attributes":
            made[key] = _plain_attributes(value)
        elif key == "body":
            made[key] = plain(value)
        elif key in ("events", "links") and isinstance(value, list):
            made[key] = [_plain_fields(it) if isinstance(it, dict) else it for it in value]
        else:
            made[key] = str(value) if is_time and isinstance(value, int) else value
    return made


def _time(value: object) -> str | None:
    try:
        nanos = int(value) if isinstance(value, str | int) else 0
        if nanos <= 0:
            return None
        seconds, rest = divmod(nanos, _NANOS)
        text = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"
    except (ValueError, OverflowError, OSError):  # no time, or none that a calendar has
        return None
    digits = f"{rest:09d}".rstrip("0")
    return f"{text}.{digits}Z" if digits else f"{text}Z"
