"""What interleavings a partition must stand; whole histories of them are in tests/simulation."""

import asyncio

import pytest

from processor.core.errors import FencedError, StateError
from processor.core.policy import ChunkPolicy
from processor.metrics import NoMetrics
from processor.protocol.changelog import (
    PARTITION_KEY,
    Counts,
    PartitionEntry,
    encode_partition,
)
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.partition import Partition, Phase
from processor.protocol.partitions import Partitions
from processor.protocol.port import Survey
from processor.testing import FakeClock
from tests.builders import WordCounter
from tests.simulation.loop import run

CONFIG = ChunkerConfig("records", ChunkPolicy(), WordCounter())


def entry(seen):
    return encode_partition(
        PartitionEntry(
            low=seen,
            log_time_ms=0,
            seen=seen,
            partition_count=1,
            rule=CONFIG.rule,
            fingerprint=None,
            counts=Counts(),
        )
    )


class FakeBroker:
    """A broker with a log of ten records; what it answers next is in its fields."""

    def __init__(self, *changelogs, committed=None):
        self.changelogs = list(changelogs) or [{}]
        self.committed = committed
        self.commits = []
        self.is_answering = asyncio.Event()

    async def fence(self):
        await asyncio.sleep(0.1)

    async def read_changelog(self, taker):
        is_last = len(self.changelogs) == 1
        taker.take((self.changelogs[0] if is_last else self.changelogs.pop(0)).items())

    async def survey(self, _offsets):
        return Survey(1, 0, 10, self.committed)

    async def seek(self, _offset, _incarnation):
        await asyncio.sleep(0.1)

    async def commit(self, transaction):
        self.commits.append(transaction)
        await self.is_answering.wait()
        message = "a newer epoch exists"
        raise FencedError(message)

    async def owns(self):
        return True

    async def discard(self):
        pass


def partition_of(broker):
    return Partition(0, broker, CONFIG, FakeClock(), NoMetrics())


def test_offset_that_someone_has_reset_is_a_fault():
    partition = partition_of(FakeBroker({PARTITION_KEY: entry(4)}, committed=7))
    with pytest.raises(StateError, match="someone has reset the group"):
        run(partition.open(lambda: True))
    assert partition.phase is Phase.CLOSED


@pytest.mark.parametrize("before", [{}, {PARTITION_KEY: entry(4)}], ids=["first", "later"])
def test_opener_that_another_owner_has_fenced_does_not_call_for_a_person(before):
    """Symptom: a worker paused while it opened went on after another had taken the partition over
    and committed; it ended with exit code 70 and the advice to start over with a reset.
    """
    partition = partition_of(FakeBroker(before, {PARTITION_KEY: entry(7)}, committed=7))
    with pytest.raises(FencedError, match="another worker has opened it"):
        run(partition.open(lambda: True))
    assert partition.phase is Phase.CLOSED


def test_late_failure_of_a_held_commit_leaves_alone_what_was_opened_since():
    """Symptom: a rebalance while a worker ended on SIGTERM left a partition ready without a
    state. Cause: the first holding closed what the second had let open again.
    """

    async def story():
        broker = FakeBroker()
        partition = partition_of(broker)
        await partition.open(lambda: True)
        holding = asyncio.ensure_future(partition.hold(10))
        await asyncio.sleep(0.01)
        assert broker.commits
        await partition.hold(10)
        opening = asyncio.ensure_future(partition.open(lambda: True))
        await asyncio.sleep(0.15)
        broker.is_answering.set()
        await asyncio.gather(holding, opening)
        assert partition.phase is Phase.READY
        assert partition.state is not None

    run(story())


def test_commit_that_is_not_answered_while_holding_closes_the_partition():
    async def story():
        partition = partition_of(FakeBroker())
        await partition.open(lambda: True)
        await partition.hold(1)
        assert partition.phase is Phase.CLOSED
        assert partition.state is None

    run(story())


def test_nothing_is_opened_after_the_end():
    """Symptom: a partition that the group gave to a worker on its way out was opened, and kept
    from its next owner until that process ended.
    """

    async def story():
        partitions = Partitions(lambda _: partition_of(FakeBroker()), 0.1, pytest.fail)
        await partitions.close(1)
        await partitions.assign({0}, lambda: True)
        assert list(partitions) == []

    run(story())


def test_a_failure_that_nobody_expected_ends_the_process():
    """Symptom: a partition stopped for good, without a word, beside others that went on."""

    class Broken(FakeBroker):
        async def fence(self):
            raise ZeroDivisionError

    async def story():
        fatal = []
        partitions = Partitions(lambda _: partition_of(Broken()), 0.1, fatal.append)
        await partitions.assign({0}, lambda: True)
        [error] = fatal
        assert isinstance(error, StateError)
        assert "ZeroDivisionError" in str(error)

    run(story())
