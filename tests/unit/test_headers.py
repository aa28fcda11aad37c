"""Headers that a chunk carries: which of a record's, and every byte of them."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.core.accumulator import ENVELOPE_BYTES, SessionAccumulator
from processor.core.errors import ConfigError
from processor.core.policy import ChunkPolicy
from processor.core.records import Record
from processor.core.session_state import SessionState
from processor.headers import chosen_headers, headers_json, number_in
from processor.wire import RECORD_BYTES, ChunkEncoder, read_value
from processor.wire_models import decode_chunk

POLICY = ChunkPolicy(5000, carry_headers=("event-time", "user-id"))
HEADERS = (("user-id", b"ada"), ("event-time", b"10:15"))

values = st.one_of(st.none(), st.binary(), st.text().map(str.encode))
headers = st.lists(st.tuples(st.text(), values), unique_by=lambda it: it[0]).map(tuple)


def chunk_of(record, policy=POLICY):
    held = SessionAccumulator(SessionState.new(record.session), policy)
    (chunk,) = held.push(record, 0) or held.finish()
    return chunk


def encoder_of(policy=POLICY):
    return ChunkEncoder(policy, "chars_over_four", "records", 3)


@pytest.mark.parametrize(
    ("names", "why"),
    [(("a", "a"), "each once"), (("a", ""), "each once"), (("n" * 397,), "at most 400 bytes")],
)
def test_names_that_no_policy_can_have_are_refused(names, why):
    with pytest.raises(ConfigError, match=why):
        ChunkPolicy(carry_headers=names)


def test_those_that_are_there_are_chosen_in_the_order_of_the_names():
    names = ("event-time", "absent", "user-id")
    assert chosen_headers(HEADERS, names) == HEADERS[::-1]
    assert chosen_headers((), names) == ()


def test_the_last_of_a_repeated_name_counts_even_if_it_is_null():
    there = [("a", b"1"), ("a", b"2"), ("b", b"3"), ("b", None)]
    assert chosen_headers(there, ("a", "b")) == (("a", b"2"), ("b", None))


def test_text_stays_text_null_stays_null_and_other_bytes_are_base64():
    found = json.loads(
        b"{%b}" % headers_json((("a", "é\n".encode()), ("b", None), ("c", b"\xff")))[:-1]
    )
    assert found == {"headers": {"a": "é\n", "b": None, "c": {"base64": "/w=="}}}
    assert headers_json(()) == b""


@given(headers)
def test_every_header_comes_back_to_the_byte_in_one_line(carried):
    line = encoder_of().encode(chunk_of(Record("s1", b"1", 1, 4, 5, 0, headers=carried)))
    assert b"\n" not in line
    (read,) = decode_chunk(line).records
    assert read.value_bytes == b"1"
    back = {
        name: it.encode()
        if isinstance(it, str)
        else it and base64.b64decode(it.encoded, validate=True)
        for name, it in read.headers.items()
    }
    assert back == dict(carried)


@given(headers, st.binary())
def test_headers_count_in_the_size_so_that_the_cap_holds_for_the_line(carried, value):
    _, form, size = read_value(value)
    size += len(headers_json(carried))
    line = encoder_of().encode(chunk_of(Record("s1", value, 1, 4, 5, size, form, carried)))
    assert len(line) <= ENVELOPE_BYTES + 12 + size


@pytest.mark.parametrize("value", [None, b"", b"-1", b" 1", b"\xd9\xa1", b"1e3", b"9" * 5000])
def test_a_header_that_says_no_number_is_none(value):
    """One that was null, or of more digits than ``int`` takes, ended ``processor verify``."""
    assert number_in(value) is None


def test_a_header_that_says_a_number_is_read():
    assert [number_in(it) for it in (b"0", b"42", b"9" * 18)] == [0, 42, 10**18 - 1]


def test_the_room_kept_around_records_holds_the_longest_names_too():
    policy = ChunkPolicy(
        10**12, max_chunk_bytes=10**12, max_chunk_records=10**12, carry_headers=("n" * 396,)
    )
    huge = (1 << 63) - 1
    record = Record("s1", b"1", 10**12, huge, huge, RECORD_BYTES + 1)
    encoder = ChunkEncoder(policy, "c" * 500, "t" * 249, 2**31 - 1)
    assert len(encoder.encode(chunk_of(record, policy))) <= ENVELOPE_BYTES + record.size_bytes


def test_chunks_name_the_headers_that_they_carry_only_if_they_carry_any():
    record = Record("s1", b"1", 1, 4, 5)
    assert decode_chunk(encoder_of().encode(chunk_of(record))).policy.carry_headers == (
        "event-time",
        "user-id",
    )
    plain = encoder_of(ChunkPolicy()).encode(chunk_of(record, ChunkPolicy()))
    assert b"headers" not in plain


def test_a_record_that_is_too_large_leaves_its_headers_unless_they_are_too_large_themselves():
    policy = ChunkPolicy(5000, max_chunk_bytes=2000, carry_headers=("user-id",))
    small = chunk_of(Record("s1", b"abc", 7, 40, 1, headers=HEADERS[:1]), policy)
    (read,) = decode_chunk(encoder_of(policy).encode_omitted(small)).records
    assert read.headers == {"user-id": "ada"}
    large = chunk_of(Record("s1", b"abc", 7, 40, 1, headers=(("user-id", b"x" * 2000),)), policy)
    line = encoder_of(policy).encode_omitted(large)
    assert decode_chunk(line).records[0].headers == {}
    assert len(line) <= 2000
