"""OTLP's protobuf as the dicts of its JSON. Needs the package opentelemetry-proto.

Logs, spans and metrics share the outer shape (a resource, a scope, a list), and nothing in the
bytes says which it is. The innermost messages tell: field 1 is a fixed 64-bit time in a log record,
16 bytes of trace id in a span, a name in a metric; and where a span has its times, a metric has
messages. A field of another wire type than its number has is kept as an unknown one: a message with
such a field is of another kind.
"""

import base64
from collections.abc import Iterator
from typing import Final, TypeVar

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import Span, TracesData

from processor.core.errors import FormatError
from processor.formats.otlp import Json

_TRACE_ID_BYTES: Final = 16
_SPAN_ID_BYTES: Final = 8
M = TypeVar("M", bound=Message)

_IDS: Final = ("traceId", "spanId", "parentSpanId")


def as_json(value: bytes) -> Json:
    """Return an export of logs or spans in the form of OTLP's JSON.

    Raises:
        FormatError: It is neither.
    """
    traces = _parsed(TracesData(), value)
    if traces is not None:
        spans = [it for at in traces.resource_spans for by in at.scope_spans for it in by.spans]
        if spans and all(map(_is_span, spans)):
            return _to_json(traces)
    logs = _parsed(LogsData(), value)
    if logs is not None:
        records = [it for at in logs.resource_logs for by in at.scope_logs for it in by.log_records]
        if all(map(_fits, records)) and (records or _is_all_known(logs, value)):
            return _to_json(logs)
    message = "not OTLP: neither logs nor spans, in JSON or protobuf; metrics are not read"
    raise FormatError(message)


def _parsed(message: M, value: bytes) -> M | None:
    try:
        message.ParseFromString(value)
    except DecodeError:
        return None
    return message


def _is_span(span: Span) -> bool:
    return (
        len(span.trace_id) == _TRACE_ID_BYTES
        and len(span.span_id) == _SPAN_ID_BYTES
        and bool(span.start_time_unix_nano or span.end_time_unix_nano)
    )


def _fits(message: Message) -> bool:
    known = message.DESCRIPTOR.fields_by_number
    return not any(it.field_number in known for it in UnknownFieldSet(message))


def _is_all_known(message: Message, value: bytes) -> bool:
    """Tell whether an export without entries is one: any bytes could be read as unknown fields."""
    message.DiscardUnknownFields()
    return bool(message.ByteSize() == len(value))


def _to_json(message: Message) -> Json:
    document: Json = MessageToDict(message, use_integers_for_enums=True)
    for data in _with_ids(document):
        for key in _IDS:
            if key in data:
                # Protobuf's own JSON has base64 for all bytes, OTLP's has hex for ids.
                data[key] = base64.b64decode(data[key]).hex()
    return document


def _with_ids(document: Json) -> Iterator[Json]:
    for at in document.get("resourceSpans", ()):
        for by in at.get("scopeSpans", ()):
            for span in by.get("spans", ()):
                yield span
                yield from span.get("links", ())
    for at in document.get("resourceLogs", ()):
        for by in at.get("scopeLogs", ()):
            yield from by.get("logRecords", ())
