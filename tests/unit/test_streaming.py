"""The in-memory path: one stream, silence, a source that fails."""

import asyncio
import gc
import itertools
import selectors
import tracemalloc

import pytest

from processor.core.chunks import FlushReason
from processor.core.policy import ChunkPolicy, OrIdle
from processor.streaming import chunks
from processor.testing import CRASH, SourceCrashError, VecSource
from tests.builders import WordCounter, chunk_all, record


class TimeTravelLoop(asyncio.SelectorEventLoop):
    """An event loop whose time jumps to the next timer, so that waiting takes none."""

    def __init__(self):
        super().__init__(_JumpingSelector(self))
        self.now_s = 1000.0

    def time(self):
        return self.now_s


class _JumpingSelector(selectors.SelectSelector):
    def __init__(self, loop):
        super().__init__()
        self._loop = loop

    def select(self, timeout=None):
        self._loop.now_s += timeout or 0
        return super().select(0)


class SlowSource:
    """Records with seconds of silence between them."""

    def __init__(self, *items):
        self._items = items

    async def records(self):
        for item in self._items:
            if isinstance(item, float):
                await asyncio.sleep(item)
            else:
                yield item


def run(source, policy):
    async def collect():
        return [chunk async for chunk in chunks(source, policy, WordCounter())]

    with asyncio.Runner(loop_factory=TimeTravelLoop) as runner:
        return runner.run(collect())


def tokens_of(found):
    return [[one.token_count for one in chunk.records] for chunk in found]


IDLE = ChunkPolicy(10, flush=OrIdle(30))


def test_silence_closes_a_chunk_by_the_clock():
    found = run(SlowSource(record(3), record(2), 31.0, record(4)), IDLE)
    assert tokens_of(found) == [[3, 2], [4]]
    assert [(it.flush, it.clock) for it in found] == [
        (FlushReason.IDLE, True),
        (FlushReason.END, False),
    ]


def test_silence_that_is_not_long_enough_closes_nothing_and_loses_nothing():
    found = run(SlowSource(*itertools.chain(*[(record(1), 29.0)] * 5)), IDLE)
    assert tokens_of(found) == [[1] * 5]


def test_a_silence_that_never_ends_closes_once():
    found = run(SlowSource(record(3), 1000.0), IDLE)
    assert tokens_of(found) == [[3]]


def test_age_runs_from_the_first_record_however_busy_the_stream_is():
    policy = ChunkPolicy(1000, max_age_s=60)
    found = run(SlowSource(*itertools.chain(*[(record(1), 25.0)] * 4)), policy)
    assert [(len(it.records), it.flush) for it in found] == [
        (3, FlushReason.AGE),
        (1, FlushReason.END),
    ]


def test_records_with_timestamps_are_cut_by_them_however_fast_they_come():
    found = chunk_all([record(1, at_s=0), record(1, at_s=30), record(1, at_s=60.001)], IDLE)
    assert tokens_of(found) == [[1, 1], [1]]
    assert [it.clock for it in found] == [False, False]


def test_a_source_that_fails_hands_over_what_was_closed_and_what_was_open():
    source = VecSource([record(6), record(6), record(3), CRASH, record(9)])
    seen = []

    async def read():
        async for chunk in chunks(source, ChunkPolicy(10), WordCounter()):
            seen.append(chunk)  # noqa: PERF401 - what came before the failure is kept

    with pytest.raises(SourceCrashError) as caught:
        asyncio.run(read())
    assert tokens_of(seen) == [[6]]
    assert [one.token_count for one in caught.value.open_records] == [6, 3]


def test_a_source_that_fails_at_once_had_nothing_open():
    with pytest.raises(SourceCrashError) as caught:
        chunk_all([CRASH], IDLE)
    assert caught.value.open_records == ()


def test_an_endless_source_is_never_collected():
    async def used_after(count):
        endless = VecSource(record(n % 5, offset=n) for n in itertools.count())
        held = chunks(endless, IDLE, WordCounter())
        async for chunk in held:
            if chunk.t == count:
                gc.collect()
                used = tracemalloc.get_traced_memory()[0]
                break
        await held.aclose()
        return used

    tracemalloc.start()
    try:
        few, many = (asyncio.run(used_after(count)) for count in (200, 4_000))
    finally:
        tracemalloc.stop()
    assert many < few + 50_000
