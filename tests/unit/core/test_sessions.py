"""A partition's sessions fed in batches: what is due first, and where a replay starts."""

from processor.core.policy import ChunkPolicy, OrIdle
from processor.core.records import Run
from processor.core.sessions import LowWater, PartitionSessions
from tests.builders import record


def run_of(session, *records, before_ms=0):
    times_ms = [one.timestamp_ms for one in records]
    return Run(session, records, times_ms, [before_ms, *times_ms[:-1]])


def a(tokens, offset, at_s):
    return record(tokens, session="a", offset=offset, at_s=at_s)


def b(tokens, offset, at_s):
    return record(tokens, session="b", offset=offset, at_s=at_s)


def test_the_session_silent_longest_is_due_first_whichever_came_first_in_the_batch():
    sessions = PartitionSessions(ChunkPolicy(10, flush=OrIdle(30)))
    sessions.feed([run_of("a", a(1, 0, 0), a(1, 2, 2)), run_of("b", b(1, 1, 1))], 2000)
    assert sessions.next_deadline_ms == 31_000
    assert [chunk.session for chunk in sessions.close_due(31_500)] == ["b"]
    assert [chunk.session for chunk in sessions.close_due(32_001)] == ["a"]


def test_the_chunk_opened_first_is_due_first_though_its_session_came_later_in_the_batch():
    sessions = PartitionSessions(ChunkPolicy(10, max_age_s=30))
    sessions.feed([run_of("a", a(9, 0, 0), a(9, 2, 5)), run_of("b", b(1, 1, 3), b(1, 3, 6))], 6000)
    assert sessions.next_deadline_ms == 33_000
    assert [chunk.session for chunk in sessions.close_due(34_000)] == ["b"]


def test_a_session_that_reopens_in_a_batch_enters_the_low_water_order_by_the_log():
    sessions = PartitionSessions(ChunkPolicy(10))
    sessions.feed([run_of("a", a(9, 0, 0), a(9, 5, 5)), run_of("b", b(1, 1, 3), before_ms=0)], 5000)
    assert sessions.low_water(6) == LowWater(1, 0)
    sessions.end("b", 6, 6000)
    assert sessions.low_water(7) == LowWater(5, 0)


def test_the_byte_cap_ends_a_run_in_its_middle():
    policy = ChunkPolicy(max_tokens=1000, max_chunk_bytes=2048 + 6 + 300)
    sessions = PartitionSessions(policy)
    sized = [a(1, offset, 0)._replace(size_bytes=100) for offset in range(7)]
    chunks = sessions.feed([run_of("a", *sized)], 0)
    assert [len(chunk.records) for chunk in chunks] == [3, 3]
