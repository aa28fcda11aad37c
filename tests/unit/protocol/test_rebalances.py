"""Rebalances as they are counted, and whether the group has settled."""

import asyncio

import pytest

from processor.protocol.partitions import Partitions
from processor.testing import RecordingMetrics
from tests.simulation.loop import run
from tests.unit.protocol.story import Story

COUNT, TIME = "processor_rebalances_total", "processor_rebalance_duration_seconds"


class Group:
    def __init__(self):
        self.metrics, self.story = RecordingMetrics(), Story()
        self.partitions = Partitions(lambda _: self.story.partition, 0.1, pytest.fail, self.metrics)

    async def assign(self, *numbers):
        await self.partitions.assign(set(numbers), lambda: True)


def test_rebalance_lasts_from_the_first_revocation_until_all_is_ready():
    async def story():
        it = Group()
        await it.partitions.revoke(1)
        await asyncio.sleep(2)
        await it.partitions.revoke(1)
        await asyncio.sleep(1)
        await it.assign(0)
        return it.metrics

    metrics = run(story())
    assert metrics.counts[COUNT,] == 1
    assert metrics.observations[TIME] == [pytest.approx(3)]


def test_assignment_that_the_group_has_left_behind_ends_no_rebalance():
    async def story():
        it = Group()
        await it.partitions.revoke(1)
        await it.partitions.assign({0}, lambda: False)
        return it.metrics

    assert run(story()).observations[TIME] == []


def test_end_of_the_worker_is_no_rebalance():
    async def story():
        it = Group()
        await it.assign(0)
        await it.partitions.close(1)
        return it.metrics

    assert run(story()).counts[COUNT,] == 0


def test_group_is_settled_once_the_assigned_partitions_are_ready_until_they_are_revoked():
    async def story():
        it = Group()
        slow = asyncio.Event()
        it.story.broker.fence = slow.wait
        before = it.partitions.is_settled
        assigning = asyncio.ensure_future(it.assign(0))
        await asyncio.sleep(1)
        during = it.partitions.is_settled
        slow.set()
        await assigning
        after = it.partitions.is_settled
        await it.partitions.revoke(1)
        return before, during, after, it.partitions.is_settled

    assert run(story()) == (False, False, True, False)
