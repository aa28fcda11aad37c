"""Laws of all formats: nothing is lost, a stop changes nothing, no bytes are too odd."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from processor.core.errors import FormatError, RecordError
from processor.formats import FORMATS, detect_format, format_named
from processor.formats.format import FormatOptions
from tests.unit.formats.samples import DATA, lines_of, sample
from tests.unit.formats.telemetry import (
    Reader,
    as_json,
    as_protobuf,
    call,
    log,
    logs_of,
    span,
    spans_of,
    text_of,
)

TRANSCRIPTS = [name for name in FORMATS if name != "otel"]
LINES = sorted({line for path in DATA.glob("*/*.jsonl") for line in lines_of(path)})
CLAUDE, CODEX = (sample(name)[0] for name in ("claude/5a*", "codex/*"))
ODD = [b"", b" ", b"\r", b"{", b"null", b"[]", b'{"type":"session"', b"\xff", b"\x00", b"\n"]
BRACES = [b'{"a":' * 3000, b"[" * 3000]

lines = st.one_of(
    st.sampled_from(LINES),
    st.sampled_from(ODD + BRACES),
    st.binary(max_size=20),
    st.builds(lambda line, cut: line[:cut], st.sampled_from(LINES), st.integers(0, 200)),
    st.builds(lambda one, two: one[: len(one) // 2] + two, *[st.sampled_from(LINES)] * 2),
)
options = st.builds(
    FormatOptions,
    st.just("file"),
    st.sampled_from([(), ("cwd",), ("payload.id", "uuid")]),
    st.sampled_from([(), (("cwd", "cwd"), ("m", "message.content"))]),
)

#: Few different texts, so that repeats are common.
texts = st.lists(st.sampled_from("aAbB"), max_size=5)
calls = st.builds(call, texts, st.sampled_from(["A", "B", None]), st.sampled_from("st"))
exports = st.one_of(
    st.builds(lambda told: as_json(spans_of(*told)), st.lists(calls, max_size=3)),
    st.builds(lambda told: as_protobuf(spans_of(*told)), st.lists(calls, max_size=3)),
    st.builds(lambda n: as_json(logs_of(log({"session.id": f"l{n}"}))), st.integers(0, 3)),
    st.binary(max_size=30),
)
streams = st.one_of(
    st.tuples(st.sampled_from(TRANSCRIPTS), st.lists(lines, max_size=12)),
    st.tuples(st.just("otel"), st.lists(exports, max_size=12)),
)


def read(reader, value):
    try:
        return list(reader.read(value))
    except RecordError as error:
        return [type(error)]


@given(
    stream=streams,
    chosen=options,
    session=st.sampled_from(["file", None]),
    cuts=st.sets(st.integers(0, 12)),
)
@example(("claude", CLAUDE), FormatOptions(), "file", {3})
@example(("codex", CODEX), FormatOptions(), "file", {1})
def test_stop_after_any_value_changes_nothing(stream, chosen, session, cuts):
    name, values = stream
    chosen = replace(chosen, session=session)
    whole_memory, memory = {}, {}
    whole = format_named(name, chosen, whole_memory)
    reader = format_named(name, chosen, memory)
    for number, value in enumerate(values):
        if number in cuts:
            memory = dict(memory)
            reader = format_named(name, chosen, memory)
        assert read(reader, value) == read(whole, value)
        assert memory == whole_memory
    assert all(isinstance(it, str) for pair in memory.items() for it in pair)


@given(st.sampled_from(TRANSCRIPTS), st.lists(lines, max_size=12), options)
def test_every_line_comes_out_once_to_the_byte_in_order(name, values, chosen):
    reader = format_named(name, chosen, {})
    records = [it for value in values for it in reader.read(value)]
    assert [it.value for it in records] == values
    assert all(it.session.encode() for it in records)


@given(st.lists(lines, max_size=8), st.lists(lines, max_size=8))
def test_detected_format_stays_as_more_lines_come(first, more):
    found = detect_format(first)
    assert detect_format(first + more) == found or found == "jsonl"


@pytest.mark.parametrize("name", FORMATS)
@given(value=st.one_of(st.binary(), lines, exports), session=st.sampled_from([None, "", "s"]))
@example(value=b"[" * 200_000, session="s")
@example(value=b'{"a":' * 200_000, session=None)
@example(value=b'{"sessionId":' + b"[" * 200_000, session=None)
@example(value=b"\n\x7f" * 200_000, session=None)
def test_no_bytes_raise_anything_but_a_record_error(name, value, session):
    detect_format([value])
    fields = (("h", "sessionId"),)
    reader = format_named(name, FormatOptions(session, ("sessionId.x",), fields), {})
    for record in read(reader, value):
        assert isinstance(record, type) or isinstance(record.value, bytes)


@given(st.binary(max_size=40), st.integers(0, 300))
def test_damaged_protobuf_raises_nothing_but_a_record_error(noise, at):
    whole = as_protobuf(spans_of(call("ab", "A")))
    reader = format_named("otel", FormatOptions("s"), {})
    read(reader, whole[:at] + noise + whole[at + len(noise) :])


spans = st.lists(st.builds(span, st.dictionaries(st.text(), st.text(), max_size=3)), max_size=3)
logs = st.lists(st.builds(log, st.dictionaries(st.text(), st.text(), max_size=3)), max_size=3)


@given(spans)
def test_spans_are_never_taken_for_logs(entries):
    for encode in (as_json, as_protobuf):
        records = Reader(session="s").read(spans_of(*entries), encode)
        assert [json.loads(it.value).get("name") for it in records] == ["chat"] * len(entries)


@given(logs)
def test_logs_are_never_taken_for_spans(entries):
    for encode in (as_json, as_protobuf):
        records = Reader(session="s").read(logs_of(*entries), encode)
        assert len(records) == len(entries)
        assert not any("name" in json.loads(it.value) for it in records)


@given(
    st.text(max_size=20) | st.just("claude_code.cost"),
    st.text(max_size=10) | st.just("8 bytes!"),
    st.sampled_from(["gauge", "sum", "histogram", "exponential_histogram", "summary"]),
    st.floats(),
)
def test_metrics_are_never_taken_for_logs_or_spans(name, description, kind, number):
    """A name of 16 bytes stands where a span has its trace id."""
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add()
    metric.name, metric.description = name or "x", description
    point = getattr(metric, kind).data_points.add(time_unix_nano=1)
    if kind in ("gauge", "sum"):
        point.as_double = number
    with pytest.raises(FormatError):
        Reader(session="s").read(data.SerializeToString(), encode=bytes)


@given(st.lists(st.sampled_from("aAbBcC"), max_size=150), st.data())
def test_conversation_told_call_by_call_comes_out_once(messages, data):
    reader, told, at = Reader(), [], 0
    while at < len(messages):
        at += data.draw(st.integers(1, 40)) + (at == 0)
        told += reader.messages(spans_of(call(messages[:at])))
        if data.draw(st.booleans()) and len(messages[:at]) > 1:
            assert reader.messages(spans_of(call(messages[:at]))) == []
    assert told == messages or len(messages) == 1


@given(st.lists(calls, max_size=12))
def test_of_every_call_each_message_has_come_out_at_least_as_often(told):
    """Rather a repeat than a loss, whatever order and whatever edits."""
    reader, out = Reader(), Counter()
    for it in told:
        out.update((r.session, text_of(json.loads(r.value))) for r in reader.read(spans_of(it)))
        fresh = Reader().read(spans_of(it))
        assert Counter((r.session, text_of(json.loads(r.value))) for r in fresh) <= out
