"""The six promises of the chunker, on a stream that mixes every size that has gone wrong."""

import pytest

from processor.core.chunks import FlushReason
from processor.core.policy import ChunkPolicy
from tests.builders import chunk_all, records, values

BUDGET = 10
POLICY = ChunkPolicy(max_tokens=BUDGET)

#: Empty texts, one token, exactly the budget, one above it, three times it at the start, in the
#: middle, at the end and twice in a row, and a last chunk that is only partly full.
STREAMS = {
    "everything": [3 * BUDGET, 0, 1, 4, BUDGET, 1, BUDGET + 1, 0, 0, 6, 5, 30, 30, 9, 1, 1, 7],
    "oversized first": [3 * BUDGET, 4, 4, 4],
    "oversized in the middle": [4, 3 * BUDGET, 4, 0, 4, BUDGET],
    "oversized last": [4, 4, 4, 3 * BUDGET],
    "oversized twice in a row": [2, 3 * BUDGET, 3 * BUDGET, 2],
    "exactly the budget": [BUDGET, BUDGET, BUDGET - 1, 1, 1, BUDGET],
    "one above it": [BUDGET + 1, 1, BUDGET + 1, BUDGET, BUDGET + 1],
    "only empty texts": [0] * 25,
    "one empty text": [0],
    "a partial last chunk": [5, 5, 5, 5, 3],
}

every_stream = pytest.mark.parametrize("tokens", STREAMS.values(), ids=STREAMS.keys())


@every_stream
def test_a1_no_record_is_split(tokens):
    stream = records(tokens)
    whole = {record.offset: record.value for record in stream}
    seen = [record for chunk in chunk_all(stream, POLICY) for record in chunk.records]
    assert all(record.value == whole[record.offset] for record in seen)
    assert len({record.offset for record in seen}) == len(seen) == len(stream)


@every_stream
def test_a2_lossless(tokens):
    stream = records(tokens)
    assert values(chunk_all(stream, POLICY)) == values(stream)


@every_stream
def test_a3_t_is_contiguous(tokens):
    chunks = chunk_all(records(tokens), POLICY)
    assert [chunk.t for chunk in chunks] == list(range(1, len(chunks) + 1))


@every_stream
def test_a4_respects_budget(tokens):
    for chunk in chunk_all(records(tokens), POLICY):
        assert chunk.token_count == sum(record.token_count for record in chunk.records)
        assert chunk.token_count <= BUDGET or len(chunk.records) == 1
        assert chunk.over_budget == (chunk.token_count > BUDGET)


@every_stream
def test_a5_oversized_record_survives(tokens):
    stream = records(tokens)
    alone = [chunk for chunk in chunk_all(stream, POLICY) if chunk.over_budget]
    assert values(alone) == [record.value for record in stream if record.token_count > BUDGET]
    assert all(chunk.flush is FlushReason.OVERSIZE for chunk in alone)


def test_a6_empty_source():
    assert chunk_all([], POLICY) == []


def test_the_stream_of_everything_is_cut_where_it_should_be():
    cut = [
        [record.token_count for record in chunk.records]
        for chunk in chunk_all(records(STREAMS["everything"]), POLICY)
    ]
    assert cut == [[30], [1, 1, 4], [10], [1], [11], [1, 1, 6], [5], [30], [30], [9, 1], [1, 7]]
