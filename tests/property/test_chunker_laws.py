"""Laws of the chunker on random streams and policies."""

import itertools
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st
from more_itertools import constrained_batches

from processor.core.accumulator import SessionAccumulator
from processor.core.chunks import FlushReason
from processor.core.digest import first_digest, next_digest
from processor.core.flush import why_flush
from processor.core.policy import ChunkPolicy, Tokens
from processor.core.records import Record
from processor.core.session_state import SessionState
from tests.builders import chunk_all, record, records, values
from tests.strategies import BUDGET, logs, policies, token_counts

streams = st.lists(token_counts, max_size=60)


@given(streams, policies)
def test_law_a1_no_record_is_split(tokens, policy):
    stream = records(tokens)
    seen = [one for chunk in chunk_all(stream, policy) for one in chunk.records]
    assert [(one.offset, one.value) for one in seen] == [(r.offset, r.value) for r in stream]


@given(streams, policies)
def test_law_a2_lossless(tokens, policy):
    stream = records(tokens)
    assert b"|".join(values(chunk_all(stream, policy))) == b"|".join(values(stream))


@given(streams, policies)
def test_law_a3_t_is_contiguous(tokens, policy):
    chunks = chunk_all(records(tokens), policy)
    assert [chunk.t for chunk in chunks] == list(range(1, len(chunks) + 1))


@given(streams, policies)
def test_law_a4_respects_budget(tokens, policy):
    for chunk in chunk_all(records(tokens), policy):
        assert chunk.token_count <= policy.flush_tokens or len(chunk.records) == 1
        assert len(chunk.records) <= policy.max_chunk_records
        assert chunk.over_budget == (chunk.token_count > policy.max_tokens)


@given(streams, policies)
def test_law_a5_oversized_record_survives(tokens, policy):
    stream = records(tokens)
    alone = [chunk for chunk in chunk_all(stream, policy) if chunk.over_budget]
    assert values(alone) == [one.value for one in stream if one.token_count > BUDGET]


@given(policies)
def test_law_a6_an_empty_source_gives_nothing(policy):
    assert chunk_all([], policy) == []


@given(streams, st.integers(1, BUDGET))
def test_grouping_is_that_of_constrained_batches(tokens, count):
    stream = records(tokens)
    ours = [
        list(chunk.records) for chunk in chunk_all(stream, ChunkPolicy(BUDGET, flush=Tokens(count)))
    ]
    theirs = constrained_batches(stream, count, get_len=lambda one: one.token_count, strict=False)
    assert ours == [list(batch) for batch in theirs]


@given(streams)
def test_digests_chain_from_the_session_to_the_last_chunk(tokens):
    digest = first_digest("s1")
    for chunk in chunk_all(records(tokens), ChunkPolicy(BUDGET)):
        assert chunk.previous_digest == digest
        digest = next_digest(digest, [one.value for one in chunk.records])
        assert chunk.digest == digest


def log_times(log):
    return list(itertools.accumulate((one.timestamp_ms for one, _ in log), max))


@given(logs(names=("s1",), ends=False), policies)
def test_the_shortcut_agrees_with_the_table_of_rules(log, policy):
    held = SessionAccumulator(SessionState.new("s1"), policy)
    for (one, _), now_ms in zip(log, log_times(log), strict=True):
        why = held.held and why_flush(held.held, one, policy, now_ms)
        before = held.t if held.held else None
        closed = [chunk for chunk in held.push(one, now_ms) if one not in chunk.records]
        if before is not None:
            assert [chunk.flush for chunk in closed] == ([why] if why else [])


@given(logs(names=("s1",), ends=False), policies, st.integers(0, 40))
def test_a_run_of_records_is_as_pushing_each(log, policy, cut):
    stream, times_ms = [one for one, _ in log], log_times(log)
    single, runs = (SessionAccumulator(SessionState.new("s1"), policy) for _ in range(2))
    chunks = [chunk for it in zip(stream, times_ms, strict=True) for chunk in single.push(*it)]
    found = []
    for part in (slice(cut), slice(cut, None)):
        closed = runs.push_run(stream[part], times_ms[part])
        assert all(offset >= chunk.next_offset - 1 for offset, chunk in closed)
        found += [chunk for _, chunk in closed]
    assert found == chunks
    assert runs.snapshot() == single.snapshot()


@given(st.lists(st.integers(0, 400), max_size=40), st.integers(100, 4000))
def test_the_byte_cap_holds_as_the_budget_does(sizes, cap):
    policy = ChunkPolicy(max_chunk_bytes=cap + 3000)
    stream = [Record("s1", b"x" * n, 1, i, i, n) for i, n in enumerate(sizes)]
    held = SessionAccumulator(SessionState.new("s1"), policy)
    chunks = held.push_run(stream, range(len(stream)))
    for _, chunk in chunks:
        assert len(chunk.records) == 1 or sum(len(one.value) for one in chunk.records) <= cap + 3000
        assert chunk.flush is FlushReason.BYTES


def test_an_endless_source_runs_in_bounded_memory():
    """The stream is never collected: what is held is the open chunk."""
    endless = (record(n % 7, offset=n) for n in itertools.count())
    policy = ChunkPolicy(50)
    held = SessionAccumulator(SessionState.new("s1"), policy)

    def run(count: int) -> int:
        for one in itertools.islice(endless, count):
            held.push(one, 0)
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = run(2_000)
        assert run(20_000) < before + 50_000
    finally:
        tracemalloc.stop()
