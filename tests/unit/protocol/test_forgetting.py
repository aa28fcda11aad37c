"""Sessions that are forgotten, in a partition that is opened again."""

import asyncio

from processor.core.policy import ChunkPolicy
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.partition import Partition
from processor.protocol.port import Batch
from processor.testing import FakeClock, RecordingMetrics
from tests.history import QUARTERS, chunks_of, log_of
from tests.property.one_log import OneLog

FORGETTING = ChunkerConfig("records", ChunkPolicy(100, forget_ended_after_s=3.0), QUARTERS)


def work(log, until, config=FORGETTING):
    """Open, feed a record at a time up to an offset, commit, and crash."""

    async def story():
        partition = Partition(0, log, config, FakeClock(), RecordingMetrics())
        await partition.open(lambda: True)
        for message in log.log[log.position : until]:
            at, following = message.offset, message.offset + 1
            partition.feed(Batch(0, partition.incarnation, at, following, [message], 1 << 60))
        await partition.commit()
        await partition.close()

    asyncio.run(story())


def entry_keys(log):
    return {key for key, value in log.entries.items() if value is not None}


def test_the_entry_of_a_forgotten_session_goes_with_the_time_of_the_log():
    log = OneLog(log_of("a:1", "a.", "b:1", "b.", "c:1"))
    work(log, 4)
    assert entry_keys(log) == {b"", b"a", b"b"}
    log.log += log_of(*["c:1"] * 8)[5:]
    work(log, 8)
    assert entry_keys(log) == {b""}


def test_an_end_that_was_ignored_is_ignored_again_when_its_session_is_dropped_since():
    """c is open from before the second end of a, so each opening passes by that end."""
    log = OneLog(log_of("a:1", "a.", "c:1", "a.", *["c:2"] * 6))
    for until in (4, 9, 10):
        work(log, until)
    assert entry_keys(log) == {b""}
    assert [it.value for it in log.chunks] == [
        it.value for it in chunks_of(log.log, FORGETTING.policy)
    ]
    assert len(log.chunks) == 1
