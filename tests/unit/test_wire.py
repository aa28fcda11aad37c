"""A chunk's line of JSON: every record comes back to the byte, and every strict parser reads it."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.core.accumulator import ENVELOPE_BYTES, SessionAccumulator
from processor.core.errors import StateError
from processor.core.policy import ChunkPolicy, OrIdle
from processor.core.records import Carried, Record
from processor.core.session_state import SessionState
from processor.nesting import MAX_DEPTH
from processor.wire import RECORD_BYTES, ChunkEncoder, chunk_headers, read_naming, read_value
from processor.wire_models import decode_chunk

POLICY = ChunkPolicy(max_tokens=5000, flush=OrIdle(300))

#: What real sessions hold, and how each must be carried.
VALUES = {
    "a JSON line": (b'{"a": 1}', Carried.VALUE),
    "JSON with a line separator, U+2028": ('{"t":"a\u2028b\u0085c"}'.encode(), Carried.VALUE),
    "a surrogate pair as escapes": (rb'"\ud83d\ude00"', Carried.VALUE),
    "an escaped backslash before ud83d": (rb'"\\ud83d"', Carried.VALUE),
    "a number too large for a double": (b"1e999", Carried.VALUE),
    "deep, but as deep as parsers go": (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, Carried.VALUE),
    "brackets in a string": (b'"' + b"[" * 500 + b'"', Carried.VALUE),
    "brackets after an escaped quote": (rb'"\"' + b"[" * 500 + b'"', Carried.VALUE),
    "many brackets, none deep": (b"[" + b",".join([b"[]"] * 500) + b"]", Carried.VALUE),
    "one level too deep": (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), Carried.TEXT),
    "100,000 deep": (b"[" * 100_000 + b"]" * 100_000, Carried.TEXT),
    "100,000 deep and cut off": (b'{"a":' * 100_000, Carried.TEXT),
    "a lone surrogate escape": (rb'{"text":"x \ud83d y"}', Carried.TEXT),
    "NaN": (b"NaN", Carried.TEXT),
    "a raw line break between tokens": (b'{"a":\n1}', Carried.TEXT),
    "a carriage return": (b"1\r", Carried.TEXT),
    "a space before": (b" 1", Carried.TEXT),
    "a tab after": (b"1\t", Carried.TEXT),
    "a half line": (b'{"type":"att', Carried.TEXT),
    "nothing": (b"", Carried.TEXT),
    "plain text with NUL": (b"a\x00b", Carried.TEXT),
    "two documents": (b"1 2", Carried.TEXT),
    "bytes that are no UTF-8": (b'{"a":"\xff"}', Carried.BASE64),
    "an encoded surrogate": (b'"\xed\xa0\x80"', Carried.BASE64),
}

#: Hypothesis prints what it draws from.
SHORT = [value for value, _ in VALUES.values() if len(value) < 1000]

JSON_PIECES = [
    *[
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b"\\",
        b" ",
        b"\t",
        b"\x00",
        b"1",
        b"-",
        b".5",
        b"01",
    ],
    *[b"null", b"nul", b"true", b'"a"', b'"sessionId"', b'"session_id":', b'"\\ud83d"', b"\\u0000"],
    *[b"\xc3\xa9", b'"x":1', b'"y":[{}]', b"1e999"],
]

every_value = pytest.mark.parametrize(("value", "carried"), VALUES.values(), ids=VALUES.keys())


def chunk_of(*values, session="s1", timestamp_ms=1_764_500_000_000):
    """One chunk of these values, encoded, and the chunk itself."""
    held = SessionAccumulator(SessionState.new(session), POLICY)
    for offset, value in enumerate(values, 40):
        _, carried, size_bytes = read_value(value)
        held.push(
            Record(session, value, 1, offset, timestamp_ms, size_bytes, carried),
            timestamp_ms or 0,
        )
    (chunk,) = held.finish()
    return ChunkEncoder(POLICY, "chars_over_four", "records", 3).encode(chunk), chunk


@every_value
def test_each_value_is_carried_as_it_must_be(value, carried):
    assert read_value(value)[1] is carried


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (b'{"a":[1],"sessionId":"s1"}', "s1"),
        (b'{"session_id":"s1"}', "s1"),
        (b'{"conversation_id":"\\u0073\\u0031"}', "s1"),
        (b'{"sessionId":null,"session_id":"s1"}', "s1"),
        (b'{"payload":{"sessionId":"s1"}}', ""),
        (b'{"sessionId":["s1"]}', ""),
        (b'["sessionId"]', ""),
        (b'{"sessionId":"s1"} ', ""),
        (b"\xff", ""),
    ],
)
def test_a_session_is_named_by_a_field_of_the_record_itself(value, named):
    assert read_naming(value)[3] == named


@given(st.lists(st.sampled_from(JSON_PIECES), max_size=12).map(b"".join))
def test_looking_for_a_session_changes_nothing_in_what_is_strict_json(inner):
    """The decoder that finds the names skips all else; it must judge what it skips."""
    for value in (inner, b"{%b}" % inner, b'{"sessionId":%b}' % inner, b'{"k%b":1}' % inner):
        try:
            msgspec.json.decode(value, type=msgspec.Raw)
            is_json = value == value.strip(b" \t")
        except msgspec.DecodeError:
            is_json = False
        assert (read_value(value)[1] is Carried.VALUE) == is_json


@every_value
def test_each_value_comes_back_to_the_byte(value, carried):
    line, _ = chunk_of(b"1", value, b"2")
    assert [it.value_bytes for it in decode_chunk(line).records] == [b"1", value, b"2"]


@every_value
def test_the_chunk_is_one_line_that_a_strict_parser_reads(value, carried):
    line, _ = chunk_of(value)

    def refuse(constant):
        raise AssertionError(constant)

    assert b"\n" not in line
    assert b"\r" not in line
    found = json.loads(line.decode("utf-8", "strict"), parse_constant=refuse)
    json.dumps(found, ensure_ascii=False).encode("utf-8", "strict")
    assert list(found["records"][0])[-1] == carried


@given(
    st.lists(
        st.one_of(st.binary(), st.text().map(str.encode), st.sampled_from(SHORT)),
        min_size=1,
    ),
    st.text(),
)
def test_any_bytes_in_any_session_come_back(values, session):
    line, chunk = chunk_of(*values, session=session)
    read = decode_chunk(line)
    assert [it.value_bytes for it in read.records] == values
    assert (read.session, read.t, read.digest) == (session, 1, chunk.digest.hex())


@given(
    st.lists(st.one_of(st.binary(), st.text().map(str.encode)), min_size=1), st.text(max_size=40)
)
def test_the_size_that_is_counted_is_never_below_the_line(values, session):
    """The byte cap is decided by these numbers before the line exists."""
    line, chunk = chunk_of(*values, session=session)
    counted = ENVELOPE_BYTES + 6 * len(session) + sum(it.size_bytes for it in chunk.records)
    assert len(line) <= counted


def test_the_room_kept_around_records_is_enough_at_the_largest_numbers():
    huge = (1 << 63) - 1
    record = Record("s" * 200, b"1", 10**12, huge, huge, RECORD_BYTES + 1)
    held = SessionAccumulator(SessionState(record.session, huge - 1, bytes(32)), POLICY)
    (chunk,) = held.push(record, 0)
    encoder = ChunkEncoder(POLICY, "c" * 500, "t" * 249, 2**31 - 1)
    line = encoder.encode(chunk)
    assert len(line) <= ENVELOPE_BYTES + 6 * 200 + record.size_bytes


def test_the_line_has_the_fields_of_the_contract():
    line, chunk = chunk_of(b'{"any":"json, spliced verbatim"}', b"\xff")
    assert json.loads(line) == {
        "schema_version": 1,
        "session": "s1",
        "t": 1,
        "records": [
            {
                "offset": 40,
                "timestamp_ms": 1_764_500_000_000,
                "token_count": 1,
                "value": {"any": "json, spliced verbatim"},
            },
            {
                "offset": 41,
                "timestamp_ms": 1_764_500_000_000,
                "token_count": 1,
                "base64": "/w==",
            },
        ],
        "token_count": 2,
        "token_counter": "chars_over_four",
        "max_tokens": 5000,
        "over_budget": False,
        "policy": {
            "flush_tokens": 5000,
            "idle_s": 300,
            "max_age_s": 0,
            "max_chunk_bytes": 900000,
            "max_chunk_records": 10000,
        },
        "flush": "end",
        "final": False,
        "source": {"topic": "records", "partition": 3, "first_offset": 40, "last_offset": 41},
        "previous_digest": chunk.previous_digest.hex(),
        "digest": chunk.digest.hex(),
    }


def test_a_record_too_large_to_carry_leaves_its_evidence():
    held = SessionAccumulator(SessionState.new("s1"), POLICY)
    held.push(Record("s1", b"abc", 7, 40, 1), 1)
    (chunk,) = held.finish()
    line = ChunkEncoder(POLICY, "chars_over_four", "records", 3).encode_omitted(chunk)
    (record,) = json.loads(line)["records"]
    assert record == {
        "offset": 40,
        "token_count": 7,
        "bytes": 3,
        "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "omitted": "too_large",
    }
    assert decode_chunk(line).records[0].value_bytes is None
    assert decode_chunk(line).digest == chunk.digest.hex()


def test_headers_tell_the_type_the_schema_and_a_name_that_never_changes():
    _, chunk = chunk_of(b"1", session="a/b")
    assert dict(chunk_headers(chunk)) == {
        "content-type": b"application/json",
        "schema-version": b"1",
        "ce_id": b"a/b/1",
    }


@pytest.mark.parametrize("line", [b"", b"{}", b"[]", b'{"schema_version":1}', b"[" * 100_000])
def test_what_is_no_chunk_is_refused(line):
    with pytest.raises(StateError, match="not a chunk"):
        decode_chunk(line)


def test_a_newer_schema_is_refused():
    line, _ = chunk_of(b"1")
    with pytest.raises(StateError, match="schema version 2"):
        decode_chunk(line.replace(b'"schema_version":1', b'"schema_version":2'))
