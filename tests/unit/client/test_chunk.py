import dataclasses
import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.client.chunk import Chunk, Record, chunk_of
from processor.core.chunks import Chunk as Closed
from processor.core.chunks import FlushReason
from processor.core.digest import first_digest, next_digest
from processor.core.errors import StateError
from processor.core.policy import ChunkPolicy
from processor.wire import ChunkEncoder
from tests.builders import chunk_lines, told_records
from tests.unit.client.delivering import message

DATA = Path(__file__).parents[2] / "data"
POLICY = ChunkPolicy(carry_headers=("event-time", "user-id"))
CLOSED = Closed(
    session="s",
    t=1,
    records=(),
    token_count=1,
    over_budget=False,
    flush=FlushReason.TOKENS,
    final=False,
    clock=False,
    previous_digest=first_digest("s"),
    digest=bytes(32),
    next_offset=9,
)


def chunk_with(*values, headers=()):
    records = tuple(told_records(*values, headers=headers))
    digest = next_digest(first_digest("s"), values)
    closed = dataclasses.replace(CLOSED, records=records, digest=digest)
    encoder = ChunkEncoder(POLICY, "words", "records", 3)
    return chunk_of(message(encoder.encode(closed), 40, partition=3))


def messages_in(name):
    (path,) = sorted(DATA.glob(f"{name}/*.jsonl"))[:1]
    return [(it.role, it.content) for it in chunk_with(*path.read_bytes().split(b"\n")).messages()]


def said(value, **fields):
    return Record(
        json.dumps(value).encode(), 1, 1, 0, **{"timestamp_ms": 0, "headers": {}} | fields
    )


@given(st.lists(st.binary(), min_size=1))
def test_records_come_back_to_the_byte(values):
    assert [it.value for it in chunk_with(*values).records] == values


def test_a_chunk_knows_where_it_stands():
    chunk = chunk_with(b"1")
    assert chunk.position == (1, chunk.digest, 3, 40, False)
    assert json.loads(json.dumps(chunk.position)) == list(chunk.position)
    assert json.loads(chunk.line)["digest"] == chunk.digest


def test_text_has_each_record_on_a_line_of_its_own():
    assert chunk_with(b'{"a":1}', b"", b"\xff").text() == '{"a":1}\n\n\N{REPLACEMENT CHARACTER}'


def test_text_says_which_record_is_not_in_the_chunk():
    (large,) = told_records(b"x" * 70)
    closed = dataclasses.replace(CLOSED, records=(large,))
    line = ChunkEncoder(POLICY, "words", "records", 0).encode_omitted(closed)
    chunk = chunk_of(message(line, 0))
    assert chunk.records[0].value is None
    assert chunk.text() == "[a record of 70 bytes, too large for a chunk]"
    assert chunk.messages() == []


def test_headers_are_bytes_whatever_they_hold():
    headers = (("user-id", b"\xff"), ("event-time", None))
    (record,) = chunk_with(b"1", headers=headers).records
    assert record.headers == dict(headers)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (None, "not a chunk"),
        (b"{}", "not a chunk"),
        (chunk_lines(b"a")[0].replace(b'"text":"a"', b'"base64":"?"'), "not a chunk"),
        (chunk_lines(b"a")[0].replace(b'"text":"a"', b'"spare":"a"'), "without its value"),
        (
            chunk_lines(b"a")[0].replace(b'"text"', b'"headers":{"h":{"base64":"?"}},"text"'),
            "not a chunk",
        ),
    ],
)
def test_what_is_no_chunk_is_an_error_that_says_where(line, what):
    with pytest.raises(StateError, match=rf"chunks\[0\]@7: .*{what}"):
        chunk_of(message(line, 7))


WORDS = ("message", "response_item", "user", "tool_result", "tool_use", "function", "text")
KEYS = ("type", "role", "content", "message", "payload", "output", "parts", "tool_calls", "text")
ANYTHING = st.recursive(
    st.none() | st.integers() | st.sampled_from(WORDS) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=12,
)


@given(st.binary() | ANYTHING.map(lambda it: json.dumps(it).encode()))
def test_whatever_a_record_holds_it_says_something_or_nothing(value):
    message = Record(value, 1, 1, 0, 0, {}).message()
    assert message is None or (message.role and message.content.strip())


def test_messages_of_claude_code():
    assert messages_in("claude") == [("user", "prune the pear trees")]


def test_messages_of_codex_leave_out_the_events_that_repeat_them():
    assert messages_in("codex") == [("user", "prune the pear trees")]


def test_messages_of_pi_leave_out_the_empty_ones():
    assert messages_in("pi") == []
    told = {
        "type": "message",
        "message": {"role": "user", "content": [{"type": "text", "text": "x"}]},
    }
    assert said(told).message()[:2] == ("user", "x")


@pytest.mark.parametrize(
    ("value", "role", "content"),
    [
        ({"role": "user", "content": "a"}, "user", "a"),
        ({"role": "user", "content": ["a", {"type": "text", "text": "b"}]}, "user", "a\nb"),
        ({"role": "user", "parts": [{"type": "text", "content": "a"}]}, "user", "a"),
        (
            {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}]}
            | {"content": [{"type": "tool_call", "name": "ls", "arguments": {"a": 1}}]},
            "assistant",
            'ls {"a":1}',
        ),
        (
            {"role": "tool", "parts": [{"type": "tool_call_response", "result": "ok"}]},
            "tool",
            "ok",
        ),
        (
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"type": "function", "function": {"name": "ls", "arguments": "{}"}}],
            },
            "assistant",
            "ls {}",
        ),
        (
            {
                "type": "user",
                "message": {
                    "content": [
                        {"type": "tool_result", "content": [{"type": "text", "text": "41"}]}
                    ]
                },
            },
            "tool",
            "41",
        ),
        (
            {
                "type": "assistant",
                "message": {"content": [{"type": "tool_use", "name": "ls", "input": {}}]},
            },
            "assistant",
            "ls {}",
        ),
        (
            {
                "type": "message",
                "message": {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm"},
                        {"type": "toolCall", "name": "ls", "arguments": {}},
                    ],
                },
            },
            "assistant",
            "ls {}",
        ),
        (
            {"type": "message", "message": {"role": "toolResult", "content": "41"}},
            "tool",
            "41",
        ),
        (
            {
                "type": "message",
                "message": {"role": "bashExecution", "command": "ls", "output": "a"},
            },
            "user",
            "ls\na",
        ),
        (
            {
                "type": "response_item",
                "payload": {"type": "function_call", "name": "ls", "arguments": "{}"},
            },
            "assistant",
            "ls {}",
        ),
        (
            {
                "type": "response_item",
                "payload": {"type": "custom_tool_call_output", "output": "a"},
            },
            "tool",
            "a",
        ),
        (
            {
                "type": "response_item",
                "payload": {"type": "function_call_output", "output": {"content": "a"}},
            },
            "tool",
            "a",
        ),
    ],
)
def test_a_message_is_found_in_the_shape_of_each_tool(value, role, content):
    assert said(value).message()[:2] == (role, content)


@pytest.mark.parametrize(
    "value",
    [
        1,
        "text",
        {},
        {"role": "user"},
        {"role": "user", "content": [{"type": "image", "data": "x"}, 3]},
        {"type": "user", "message": "a"},
        {"type": "message", "message": None},
        {"type": "message", "message": {"content": "a"}},
        {"type": "response_item", "payload": {"type": "reasoning", "summary": "a"}},
        {"type": "response_item", "payload": {"type": "message", "content": "a"}},
        {"type": "response_item", "payload": {"type": ["message"]}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "a"}},
        {"type": "progress", "data": {}},
    ],
)
def test_what_says_nothing_is_no_message(value):
    assert said(value).message() is None


def test_a_call_nested_too_deep_is_no_message():
    deep = b'{"role":"assistant","content":[%b]}' % (
        b'{"type":"tool_result","content":[' * 2_000 + b"1" + b"]}" * 2_000
    )
    assert Record(deep, 1, 1, 0, 0, {}).message() is None


def test_half_of_a_character_in_a_message_is_replaced():
    record = Record(b'{"role":"user","content":"\\ud83d!"}', 1, 1, 0, 0, {})
    assert record.message().content == "\N{REPLACEMENT CHARACTER}!"


LOGGED = datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)
HEADER = {"headers": {"event-time": b"2026-03-01T09:00:00+01:00"}}


@pytest.mark.parametrize(
    ("line_time", "fields", "time"),
    [
        ("2026-03-01T07:00:00Z", HEADER, datetime(2026, 3, 1, 8, tzinfo=UTC)),
        ("2026-03-01T07:00:00.123456789Z", {}, datetime(2026, 3, 1, 7, 0, 0, 123456, tzinfo=UTC)),
        (
            "2026-03-01T07:00:00",
            {"timestamp_ms": 1500},
            LOGGED,
        ),
        (1, {"timestamp_ms": 1500}, LOGGED),
        ("yesterday", {"timestamp_ms": None}, None),
    ],
)
def test_the_time_is_the_sources_where_it_tells_one_else_the_logs(line_time, fields, time):
    record = said({"role": "user", "content": "a", "timestamp": line_time}, **fields)
    assert record.message().time == time


def test_a_chunk_is_what_its_message_says():
    (line,) = chunk_lines(b"a b")
    chunk = chunk_of(SimpleNamespace(topic="c", partition=1, offset=2, key=b"s", value=line))
    assert isinstance(chunk, Chunk)
    assert (chunk.session, chunk.t, chunk.token_count, chunk.flush) == ("s", 1, 2, "end")
