"""A peer's output is right only where every chunk is, byte for byte and in turn."""

import hashlib

import pytest

from benchmarks.judging import expected_of, faults_of, sums_of
from benchmarks.peers.chunking import MAX_TOKENS, chunk_of
from tests.e2e.log_reading import Message

HALF = b'"%s"' % (b"x" * (MAX_TOKENS * 2 - 2))
"""Two fill a chunk to the brim."""


def log(*lines, partition=0):
    return [
        Message(partition, offset, 0, session, value)
        for offset, (session, value) in enumerate(lines)
    ]


LOG = log((b"a", HALF), (b"b", b"1"), (b"a", HALF), (b"a", b"2"), (b"a", HALF), (b"a", HALF))
CHUNKS = log((b"a", chunk_of(b"a", 1, [HALF, HALF])), (b"a", chunk_of(b"a", 2, [b"2", HALF])))


def test_chunk_closes_at_the_first_record_that_does_not_fit():
    expected = expected_of(LOG)
    assert expected.chunk_count == 2
    assert expected.closed_by[b"a"] == [3, 5]


def test_budget_is_in_characters_and_not_in_bytes():
    wide = '"é"'.encode() * (MAX_TOKENS // 3)
    assert expected_of(log(*[(b"a", wide)] * 4)).chunk_count == 0


def test_line_above_the_budget_is_a_chunk_by_itself():
    assert expected_of(log((b"a", HALF * 3), (b"a", b"1"))).closed_by[b"a"] == [1]


def test_chunks_as_they_must_be_have_no_fault():
    assert not faults_of(expected_of(LOG), CHUNKS)


@pytest.mark.parametrize(
    ("spoil", "faults"),
    [
        (lambda chunks: chunks[:1], {"missing": 1}),
        (lambda chunks: [*chunks, chunks[0]], {"wrong": 1}),
        (lambda chunks: chunks[::-1], {"wrong": 1, "missing": 1}),
        (lambda chunks: [*chunks, *log((b"c", b"{}"))], {"wrong": 1}),
        (lambda chunks: [chunks[0], *log((b"a", b"{}"))], {"wrong": 1, "missing": 1}),
    ],
    ids=["lost", "twice", "out of turn", "of no session", "of other bytes"],
)
def test_chunk_that_is_not_as_it_must_be_is_a_fault(spoil, faults):
    assert faults_of(expected_of(LOG), spoil(CHUNKS)) == faults


def test_blobs_have_the_sum_of_their_lines_partition_by_partition():
    blobs = log((None, b"1\n2"), (None, b"3"))
    lines = log((b"a", b"1"), (b"b", b"2"), (b"a", b"3"))
    assert sums_of(blobs) == sums_of(lines) == {0: hashlib.sha256(b"1\n2\n3\n").hexdigest()}
    assert sums_of(lines) != sums_of(lines[::-1])
    assert sums_of(log((b"a", b"1"), partition=1)).keys() == {1}
