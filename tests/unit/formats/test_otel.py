import json

import pytest

from processor.core.errors import FormatError, NoSessionError
from processor.formats import detect_format
from processor.formats.format import FormatOptions
from processor.formats.otel import Otel
from tests.unit.formats.samples import read_all, sample, sessions_of
from tests.unit.formats.telemetry import (
    END,
    Reader,
    as_json,
    as_protobuf,
    attributes,
    call,
    log,
    logs_of,
    span,
    spans_of,
    typed,
)

SESSION = {"session.id": "s"}


def test_sample_gives_records_of_each_of_its_sessions():
    lines, stem = sample("otel/*.jsonl")
    prompt, request, asked, answered = read_all("otel", lines, stem)
    assert sessions_of((prompt, request, asked, answered)) == ["5a0d", "5a0d", "c1", "c1"]
    assert json.loads(request.value)["attributes"]["output_tokens"] == 41
    assert asked.value == b'{"parts":[{"content":"and the plums","type":"text"}],"role":"user"}'
    assert dict(answered.headers)["event-time"] == b"2026-03-01T08:00:05Z"


@pytest.mark.parametrize("encode", [as_json, as_protobuf])
@pytest.mark.parametrize("document", [logs_of(log(SESSION)), spans_of(span(SESSION))])
def test_export_is_detected_in_either_encoding(encode, document):
    assert detect_format([encode(document)]) == "otel"


def test_export_gives_the_same_records_in_either_encoding():
    plain = SESSION | {"n": 2**62, "f": 1.5, "b": b"\xff", "l": [1, {"m": True}], "empty": ""}
    event = {"timeUnixNano": str(END), "name": "exception", "attributes": attributes({"t": "x"})}
    link = {"traceId": "0" * 31 + "2", "spanId": "0" * 15 + "2", "attributes": attributes({"a": 1})}
    spans = spans_of(span(plain, events=[event], links=[link], status={"code": 2}))
    logs = logs_of(log(plain, body=typed({"k": [b"\x00", "é"]}), severityNumber=9, flags=1))
    for document in (spans, logs):
        assert Reader().read(document) == Reader().read(document, as_protobuf)


def test_number_that_json_wrote_in_another_way_is_the_same():
    one = log(SESSION | {"f": 5.0, "n": 5}, time=END)
    other = log(SESSION, timeUnixNano=END)
    other["attributes"] += [
        {"key": "f", "value": {"doubleValue": 5}},
        {"key": "n", "value": {"intValue": 5}},
    ]
    assert Reader().read(logs_of(one)) == Reader().read(logs_of(other))


def test_log_record_is_a_record_with_plain_values():
    body = "claude_code.user_prompt"
    plain = SESSION | {"event.name": "user_prompt", "prompt_length": 12, "prompt": "prune it"}
    (record,) = Reader().read(logs_of(log(plain, body=typed(body), severityText="")))
    assert record.session == "s"
    assert json.loads(record.value) == {
        "attributes": plain,
        "body": body,
        "timeUnixNano": str(END),
    }
    assert (
        record.value
        == json.dumps(json.loads(record.value), sort_keys=True, separators=(",", ":")).encode()
    )


def test_fields_that_protobuf_leaves_out_are_left_out():
    written = {"flags": 0, "severityText": "", "observedTimeUnixNano": "0", "traceId": ""}
    plain = Reader().read(logs_of(log(SESSION)))
    assert Reader().read(logs_of(log(SESSION, **written))) == plain
    (record,) = Reader(session="s").read(spans_of(span(name="0")))
    assert json.loads(record.value)["name"] == "0"


def test_attributes_of_one_name_both_stay():
    doubled = [*attributes(SESSION), *attributes({"a": 1}), *attributes({"a": 2})]
    (record,) = Reader().read(logs_of({"attributes": doubled}))
    assert json.loads(record.value)["attributes"] == doubled


def test_number_that_json_lacks_is_a_text():
    nan = b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[%s],"body":%s}]}]}]}'
    session = json.dumps(attributes(SESSION)[0]).encode()
    (record,) = Reader().read(nan % (session, b'{"doubleValue":NaN}'), encode=bytes)
    assert json.loads(record.value)["body"] == "NaN"
    (record,) = Reader().read(nan % (session, b'{"doubleValue":1e999}'), encode=bytes)
    assert json.loads(record.value)["body"] == "1e999"
    infinite = logs_of(log(SESSION, body={"doubleValue": "Infinity"}))
    (record,) = Reader().read(infinite, as_protobuf)
    assert json.loads(record.value)["body"] == "Infinity"


@pytest.mark.parametrize(
    ("own", "scope", "resource", "session"),
    [
        ({"gen_ai.conversation.id": "c", "session.id": "s"}, {}, {}, "c"),
        ({"session.id": "s"}, {"gen_ai.conversation.id": "c"}, {}, "s"),
        ({}, {"session.id": "s"}, {"session.id": "r"}, "s"),
        ({}, {}, {"session.id": "r"}, "r"),
        ({"session.id": ""}, {}, {"session.id": "r"}, "r"),
        ({"session.id": 7}, {}, {}, "7"),
        ({"user.thread": "t", "gen_ai.conversation.id": "c"}, {}, {}, "t"),
    ],
)
def test_session_is_the_first_that_is_there(own, scope, resource, session):
    document = logs_of(log(own), scope=scope, resource=resource)
    (record,) = Reader(session_fields=("user.thread",)).read(document)
    assert record.session == session


def test_entry_without_a_session_comes_out_as_an_export_that_can_be_read_again():
    document = logs_of(log(SESSION), log({"a": 1}), resource={"service.name": "x"})
    named, nameless = Reader().read(document)
    assert (named.session, nameless.session) == ("s", None)
    (again,) = Reader(session="found").read(nameless.value, encode=bytes)
    assert again.session == "found"
    assert json.loads(again.value)["attributes"] == {"a": 1}
    assert json.loads(nameless.value)["resourceLogs"][0]["resource"]["attributes"]


def test_export_without_any_session_is_refused_or_of_its_stream():
    document = logs_of(log(), log())
    with pytest.raises(NoSessionError, match="add one at the source"):
        Reader().read(document)
    assert [it.session for it in Reader(session="file").read(document)] == ["file"] * 2


def test_export_without_entries_is_nothing():
    for value in (b"", as_json({"resourceLogs": []}), as_protobuf(logs_of())):
        assert list(Reader().read(value, encode=bytes)) == []


@pytest.mark.parametrize(
    "value",
    [
        b"text",
        b"{}",
        b"[]",
        b'{"resourceMetrics":[]}',
        b'{"resourceLogs":3}',
        b'{"resourceLogs":[3]}',
        b'{"resourceLogs":[{"scopeLogs":[{"logRecords":{}}]}]}',
        b'{"resourceLogs":[',
        b'{"resourceLogs":' * 100_000,
        b"\xff",
        b"\x0a\x7f",
        b"\x08\x01",
    ],
)
def test_what_is_no_export_is_refused(value):
    with pytest.raises(FormatError, match="not OTLP"):
        Reader(session="s").read(value, encode=bytes)


def test_pretty_printed_json_after_a_line_feed_is_json_not_protobuf():
    value = b"\n" + json.dumps(logs_of(log(SESSION)), indent=1).encode()
    assert len(Reader().read(value, encode=bytes)) == 1


def test_values_nested_too_deep_are_refused_and_leave_no_trace():
    reader = Reader()
    body = b'{"arrayValue":{"values":[' * 400 + b"]}}" * 400
    value = as_json(logs_of(log(SESSION, body="BODY"))).replace(b'"BODY"', body)
    with pytest.raises(FormatError):
        reader.read(value, encode=bytes)
    assert reader.memory == {}


def test_export_that_fails_after_a_call_was_read_leaves_no_trace_of_it():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    broken = spans_of(call("a", "B"), span(SESSION, extra=deep))
    memory = {}
    reader = Otel(lambda value: broken if value == b"broken" else {}, FormatOptions(), memory)
    with pytest.raises(FormatError, match="nested too deep"):
        reader.read(b"broken")
    reader.read(b"nothing")
    assert memory == {}


@pytest.mark.parametrize(
    ("data", "time"),
    [
        (log(time=END), b"2026-03-01T08:00:05Z"),
        (log(time=END + 1_500_000), b"2026-03-01T08:00:05.0015Z"),
        ({"observedTimeUnixNano": END + 1}, b"2026-03-01T08:00:05.000000001Z"),
        ({"timeUnixNano": "0"}, None),
        ({"timeUnixNano": 10**30}, None),
        ({"timeUnixNano": "soon"}, None),
        ({}, None),
    ],
)
def test_event_time_is_told_to_the_nanosecond(data, time):
    (record,) = Reader(session="s").read(logs_of(data))
    assert dict(record.headers).get("event-time") == time


def test_event_time_of_a_span_is_its_end():
    (record,) = Reader(session="s").read(spans_of(span()))
    assert dict(record.headers)["event-time"] == b"2026-03-01T08:00:05Z"


def test_chosen_attributes_become_headers():
    document = logs_of(log({"user.id": "u"}), resource={"n": 3, "user.id": "r"})
    fields = (("user-id", "user.id"), ("n", "n"), ("x", "gone"))
    (record,) = Reader(session="s", header_fields=fields).read(document)
    assert record.headers[1:] == (("user-id", b"u"), ("n", b"3"))
