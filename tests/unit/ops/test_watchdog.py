"""What the watchdog looks at and what it does; how it judges is in test_stuck.py."""

import asyncio
import logging

import pytest

from processor.core.errors import UnreachableError
from processor.kafka.reading import Ends
from processor.ops.watchdog import LoopGuard, Watchdog
from processor.protocol.partitions import Partitions
from tests.simulation.loop import run
from tests.unit.protocol.story import Story, raw

AFTER_S = 120


class Ended(Exception):  # noqa: N818 - no error
    """The process has ended."""


class Watched:
    """One partition with its watchdog, on virtual time."""

    def __init__(self):
        self.story = Story()
        self.partitions = Partitions(lambda _: self.story.partition, 0.1, self.fail)
        self.ends, self.answers_after_s = {0: Ends(0, 0)}, 0
        self.watchdog = Watchdog(self.partitions, self.tell_ends, AFTER_S, self.end)

    async def tell_ends(self, numbers):
        await asyncio.sleep(self.answers_after_s)
        if isinstance(self.ends, Exception):
            raise self.ends
        return {it: self.ends[it] for it in numbers}

    def fail(self, error):
        raise error

    def end(self, message):
        raise Ended(message)

    async def assign(self):
        await self.partitions.assign({0}, lambda: True)

    async def watch(self, for_s):
        """Return what the watchdog ended the process with, ``None`` if it did not."""
        try:
            async with asyncio.timeout(for_s):
                await self.watchdog.watch_forever()
        except TimeoutError:
            return None
        except Ended as ended:
            return str(ended)


def test_process_ends_with_a_message_when_a_partition_is_stuck(caplog):
    async def story():
        it = Watched()
        await it.assign()
        it.story.feed(raw(0, 1))
        it.ends = {0: Ends(2, 2)}
        return await it.watch(for_s=200)

    said = run(story())
    assert said.startswith("records[0]: stuck at offset 1 for 120 s")
    (told,) = [it for it in caplog.records if it.levelno == logging.CRITICAL]
    assert (told.topic, told.partition) == ("records", 0)
    assert (told.phase, told.position, told.stable_end) == ("ready", 1, 2)


def test_partition_that_is_fed_now_and_then_goes_on():
    async def story():
        it = Watched()
        await it.assign()
        it.ends = {0: Ends(100, 100)}
        watching = asyncio.ensure_future(it.watch(for_s=1000))
        for offset in range(9):
            await asyncio.sleep(100)
            it.story.feed(raw(offset, 1))
        return await watching

    assert run(story()) is None


def test_broker_that_does_not_answer_for_hours_ends_nothing():
    async def story():
        it = Watched()
        await it.assign()
        it.ends = {0: Ends(1, 1)}
        watching = asyncio.ensure_future(it.watch(for_s=7200))
        await asyncio.sleep(100)
        it.ends = UnreachableError("away")
        await asyncio.sleep(7000)
        # Back again: the partition has its time anew.
        it.ends = {0: Ends(1, 1)}
        return await watching

    assert run(story()) is None


def test_broker_that_never_answers_does_not_hold_the_watchdog_up():
    async def story():
        it = Watched()
        await it.assign()
        it.ends, it.answers_after_s = {0: Ends(1, 1)}, 10_000
        watching = asyncio.ensure_future(it.watch(for_s=1300))
        await asyncio.sleep(1000)
        assert not watching.done()
        it.answers_after_s = 0
        return await watching

    assert run(story()).startswith("records[0]: stuck")


@pytest.mark.parametrize("verb", ["hold", "close"])
def test_partition_that_is_held_or_closed_is_not_looked_at(verb):
    async def story():
        it = Watched()
        await it.assign()
        it.ends = {0: Ends(9, 9)}
        await (it.partitions.revoke(1) if verb == "hold" else it.story.partition.close())
        return await it.watch(for_s=1000)

    assert run(story()) is None


def test_partition_that_waits_for_the_others_of_its_assignment_is_not_looked_at():
    """Nothing flows until all are open, and a large changelog takes its time."""

    async def story():
        it, slow = Watched(), Story()
        slow.broker.fence = lambda: asyncio.sleep(1000)
        made = {0: it.story.partition, 1: slow.partition}
        slow.partition.number = 1
        it.partitions._make = made.__getitem__
        it.ends = {0: Ends(9, 9), 1: Ends(0, 0)}
        assigning = asyncio.ensure_future(it.partitions.assign({0, 1}, lambda: True))
        during = await it.watch(for_s=900)
        await assigning
        return during, await it.watch(for_s=200)

    during, after = run(story())
    assert during is None
    assert after.startswith("records[0]: stuck at offset 0")


def test_open_transaction_is_told_once_with_its_place_and_the_remedy(caplog):
    async def story():
        it = Watched()
        await it.assign()
        it.ends = {0: Ends(0, 3)}
        return await it.watch(for_s=1000)

    with caplog.at_level(logging.WARNING):
        assert run(story()) is None
    (told,) = [it for it in caplog.records if it.levelno == logging.WARNING]
    assert (told.topic, told.partition, told.offset) == ("records", 0, 0)
    assert "abort --topic records --partition 0 --start-offset 0`" in told.getMessage()


class Guarded:
    def __init__(self):
        self.said = []
        self.guard = LoopGuard(8, self.said.append)


def test_loop_that_does_not_run_ends_the_process():
    it = Guarded()
    it.guard.tick()
    for _ in range(8):
        it.guard.look()
    assert it.said == []
    it.guard.look()
    assert "event loop was blocked for 8 s" in it.said[0]


def test_loop_that_runs_now_and_then_ends_nothing():
    it = Guarded()
    for number in range(100):
        if number % 7 == 0:
            it.guard.tick()
        it.guard.look()
    assert it.said == []
