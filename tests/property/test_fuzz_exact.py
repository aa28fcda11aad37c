"""Damage never alters a record in silence: its bytes come out, or something says so."""

import pytest
from aiokafka.errors import KafkaError
from hypothesis import given
from hypothesis import strategies as st

from processor.core.digest import next_digest
from processor.core.errors import ChangelogError, StateError
from processor.core.policy import ChunkPolicy
from processor.kafka.record_reader import TotalRecords
from processor.proof.seen import Seen
from processor.protocol.changelog import (
    PARTITION_KEY,
    decode_partition,
    decode_sessions,
    encode_partition,
    encode_session,
)
from processor.protocol.port import Message
from processor.wire_models import decode_chunk
from tests.builders import chunk_all
from tests.property.damage import bounded, damaged
from tests.property.readings import records_of
from tests.property.samples import (
    BATCHES,
    CHUNKS,
    ENCODER,
    ENTRIES,
    PARTITION,
    TRANSCRIPT_LINES,
    VALUES,
    as_record,
)

values = damaged(VALUES + TRANSCRIPT_LINES)
headers = st.dictionaries(
    st.sampled_from(["event-time", "\u00fc", "user-id"]),
    st.one_of(st.none(), damaged([b"then", b"\xff"])),
).map(lambda it: tuple(it.items()))


@given(st.lists(st.tuples(values, headers), min_size=1, max_size=4))
def test_a_record_of_any_bytes_comes_out_of_its_chunk_to_the_byte(rows):
    records = [as_record(value, offset, its) for offset, (value, its) in enumerate(rows)]
    with bounded():
        lines = [ENCODER.encode(it) for it in chunk_all(records, ChunkPolicy(max_chunk_bytes=9999))]
    assert not any(b"\n" in line or b"\r" in line for line in lines)
    found = [it for line in lines for it in decode_chunk(line).records]
    assert [it.value_bytes for it in found] == [value for value, _ in rows]
    assert [tuple(it.headers) for it in found] == [tuple(dict(its)) for _, its in rows]


@given(damaged(CHUNKS))
def test_a_damaged_chunk_is_refused_or_its_digest_tells(line):
    try:
        seen = Seen(Message(b"s1", line, ()))
    except StateError:
        return
    chunk, whole = seen.chunk, [decode_chunk(it) for it in CHUNKS]
    same = [it for it in whole if (it.previous_digest, it.digest) == _digests(chunk)]
    if same and None not in seen.values:
        digest = next_digest(bytes.fromhex(chunk.previous_digest), seen.values).hex()
        kept = [[it.value_bytes for it in one.records] for one in same]
        assert seen.values in kept or digest != chunk.digest


def _digests(chunk):
    return chunk.previous_digest, chunk.digest


@given(damaged(BATCHES))
def test_a_batch_whose_checksum_holds_has_the_records_that_were_sent(data):
    """As proofs and rebuilding read; a worker trusts the broker's own check, and TCP's."""
    (sent,) = {tuple(map(_content, records_of(it))) for it in BATCHES[:-1]}
    batches = TotalRecords(data)
    try:
        while batches.has_next():
            one = batches.next_batch()
            if one.magic == 2 and one.validate_crc():
                found = [(it.key, it.value, list(it.headers)) for it in one]
                assert found == list(map(list_of, sent))
    except KafkaError:
        pass


def _content(record):
    *_, key, value, its = record
    return key, value, tuple(its)


def list_of(content):
    key, value, its = content
    return key, value, list(its)


@given(damaged(list(ENTRIES.values())))
def test_a_session_that_can_be_read_is_written_as_it_was_read(entry):
    try:
        (state,) = decode_sessions({b"s": entry}, "records[0]")
    except ChangelogError:
        return
    assert list(decode_sessions({b"s": encode_session(state)}, "records[0]")) == [state]


@given(damaged([encode_partition(PARTITION)]))
def test_a_partition_that_can_be_read_is_written_as_it_was_read(value):
    try:
        entry = decode_partition({PARTITION_KEY: value}, "records[0]")
    except ChangelogError:
        return
    again = decode_partition({PARTITION_KEY: encode_partition(entry)}, "records[0]")
    assert encode_partition(again) == encode_partition(entry)


@pytest.mark.parametrize("change", [(b"\xc4\x20", b"\xc4\x1f"), (b"\x01\x97\x03", b"\x01\x97\xff")])
def test_an_entry_that_a_dormant_session_could_not_hold_is_refused(change):
    """A shorter digest was padded with zeros, and t = -1 ended the worker with a struct.error."""
    entry = ENTRIES[b"s1"]
    if change[1] == b"\xc4\x1f":
        entry = entry.replace(bytes(range(32)), bytes(range(31)))
    damaged_entry = entry.replace(*change)
    assert damaged_entry != ENTRIES[b"s1"]
    with pytest.raises(ChangelogError, match="damaged"):
        list(decode_sessions({b"s1": damaged_entry}, "records[0]"))
