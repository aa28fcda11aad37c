"""Exports of logs and spans, in OTLP's JSON and in its protobuf."""

import base64
import copy
import json

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from processor.formats import format_named
from processor.formats.format import FormatOptions

END = 1_772_352_005_000_000_000  # 2026-03-01T08:00:05Z


def typed(value):  # noqa: PLR0911  # a row for each type
    """Return a plain value as an AnyValue."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return {"arrayValue": {"values": [typed(it) for it in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attributes(value)}}
    return {"stringValue": value}


def attributes(plain):
    return [{"key": key, "value": typed(value)} for key, value in plain.items()]


def span(plain=(), number=1, end=END, **rest):
    return {
        "traceId": f"{number:032x}",
        "spanId": f"{number:016x}",
        "name": "chat",
        "kind": 3,
        "startTimeUnixNano": str(end - 10**9),
        "endTimeUnixNano": str(end),
        "attributes": attributes(dict(plain)),
        **rest,
    }


def log(plain=(), time=END, **rest):
    return {"timeUnixNano": str(time), "attributes": attributes(dict(plain)), **rest}


def _export(levels, entries, resource, scope):
    outer, middle, inner = levels
    within = {"scope": {"name": "lib", "attributes": attributes(scope)}, inner: list(entries)}
    return {outer: [{"resource": {"attributes": attributes(resource)}, middle: [within]}]}


def spans_of(*entries, resource=(), scope=()):
    levels = ("resourceSpans", "scopeSpans", "spans")
    return _export(levels, entries, dict(resource), dict(scope))


def logs_of(*entries, resource=(), scope=()):
    levels = ("resourceLogs", "scopeLogs", "logRecords")
    return _export(levels, entries, dict(resource), dict(scope))


def as_json(document):
    return json.dumps(document).encode()


def as_protobuf(document):
    document = copy.deepcopy(document)
    _ids_to_base64(document)
    kind = TracesData if "resourceSpans" in document else LogsData
    return ParseDict(document, kind()).SerializeToString()


def _ids_to_base64(node):
    for key, value in node.items() if isinstance(node, dict) else ():
        if key in ("traceId", "spanId", "parentSpanId"):
            node[key] = base64.b64encode(bytes.fromhex(value)).decode()
        elif isinstance(value, list):
            for it in value:
                _ids_to_base64(it)


class Reader:
    """Reads exports, and shows records as the parsed JSON that they are."""

    def __init__(self, memory=None, session=None, **options):
        self.memory = {} if memory is None else memory
        self._otel = format_named("otel", FormatOptions(session, **options), self.memory)

    def read(self, document, encode=as_json):
        return self._otel.read(encode(document))

    def messages(self, document):
        """Texts of the messages of an export that are new."""
        return [text_of(json.loads(it.value)) for it in self.read(document)]


def text_of(message):
    parts = message.get("parts", [])
    return message.get("content", "".join(str(it.get("content", "")) for it in parts))


def message(text, role="user", **rest):
    return {"role": role, "parts": [{"type": "text", "content": text}], **rest}


def call(given, made=None, session="s", number=1, **plain):
    """Return a span of a call of a model, its messages written as short texts.

    One that begins with a capital is the model's.
    """

    def listed(texts, **rest):
        roles = ("assistant" if it[0].isupper() else "user" for it in texts)
        return json.dumps(
            [message(it, role, **rest) for it, role in zip(texts, roles, strict=True)]
        )

    told = {"gen_ai.conversation.id": session, "gen_ai.input.messages": listed(given)}
    if made is not None:
        told["gen_ai.output.messages"] = listed([made], finish_reason="stop")
    return span(told | plain, number)
