"""What the changelog keeps comes back exactly, or stops the partition."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.core.errors import ChangelogError
from processor.core.policy import ChunkPolicy
from processor.core.records import Record
from processor.core.session_state import SessionState
from processor.counters import CharsOverFour
from processor.protocol.changelog import (
    PARTITION_KEY,
    Counts,
    PartitionEntry,
    decode_partition,
    decode_sessions,
    encode_partition,
    encode_session,
)
from processor.protocol.chunking import ChunkerConfig
from processor.wire import read_value

numbers = st.integers(0, (1 << 63) - 1)


@st.composite
def open_records(draw, session):
    value = draw(st.binary())
    _, carried, size_bytes = read_value(value)
    return Record(
        session,
        value,
        draw(st.integers(1, 1 << 31)),
        draw(numbers),
        draw(numbers),
        size_bytes,
        carried,
        tuple(draw(st.dictionaries(st.text(), st.none() | st.binary(), max_size=2)).items()),
    )


@st.composite
def states(draw):
    session = draw(st.text(min_size=1))
    return SessionState(
        session,
        draw(numbers),
        draw(st.binary(min_size=32, max_size=32)),
        draw(numbers),
        draw(st.booleans()),
        tuple(draw(st.lists(open_records(session), max_size=3))),
        draw(numbers),
        draw(numbers),
    )


ENTRY = PartitionEntry(
    low=3,
    log_time_ms=5,
    seen=9,
    partition_count=4,
    rule={"max_tokens": 5000, "idle_s": 300.0},
    fingerprint=(8, 1_764_500_000_000),
    counts=Counts(9, 5, 1, 1),
)


@given(states())
def test_a_session_comes_back_with_its_open_records(state):
    entries = {state.session.encode(): encode_session(state)}
    assert list(decode_sessions(entries, "c[0]")) == [state]


def test_the_partitions_own_entry_comes_back_and_is_no_session():
    entries = {PARTITION_KEY: encode_partition(ENTRY)}
    assert decode_partition(entries, "c[0]") == ENTRY
    assert list(decode_sessions(entries, "c[0]")) == []
    assert decode_partition({}, "c[0]") is None


@pytest.mark.parametrize(
    "spoilt", [b"", b"\x02abc", b"\x03\x80", b"\x01", b"\x01\xc1", b"\x01\x93\x01\x02\x03"]
)
def test_an_entry_that_cannot_be_read_is_never_guessed(spoilt):
    with pytest.raises(ChangelogError, match=r"c\[0\], partition entry"):
        decode_partition({PARTITION_KEY: spoilt}, "c[0]")
    with pytest.raises(ChangelogError, match=r"c\[0\], session b's1'"):
        list(decode_sessions({b"s1": spoilt}, "c[0]"))


def test_only_an_entry_that_an_older_version_would_misread_has_a_new_one():
    """Old and new workers share an app while they are exchanged."""
    record = Record("s1", b"1", 1, 4, 5, 113)
    plain, carrying = (
        encode_session(SessionState("s1", 1, bytes(32), records=(it,)))
        for it in (record, record._replace(headers=(("user-id", b"ada"),)))
    )
    assert (plain[:1], carrying[:1]) == (b"\x01", b"\x02")
    assert msgspec.msgpack.decode(plain[1:])[4] == [[4, 5, 1, 113, 0, b"1"]]
    rules = [
        ChunkerConfig("records", ChunkPolicy(carry_headers=it), CharsOverFour()).rule
        for it in ((), ("user-id",))
    ]
    entries = [encode_partition(msgspec.structs.replace(ENTRY, rule=it)) for it in rules]
    assert [it[:1] for it in entries] == [b"\x01", b"\x02"]
    assert decode_partition({PARTITION_KEY: entries[1]}, "c[0]").rule == rules[1]


def test_a_dormant_session_takes_little_room():
    state = SessionState("s1", 1000, bytes(32), 1_000_000)
    assert len(encode_session(state)) < 64
