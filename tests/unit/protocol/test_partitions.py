"""When a worker's partitions commit, and how they are opened again."""

import asyncio
from collections import Counter
from itertools import pairwise

import pytest

from processor.protocol.partition import Phase
from processor.protocol.partitions import MAX_FAILURES, Partitions, reopening_wait_s
from tests.simulation.loop import run

FAILURES = range(1, MAX_FAILURES)


def test_wait_grows_and_stays_within_seconds():
    waits = [reopening_wait_s(0, failures) for failures in FAILURES]
    assert all(earlier < later for earlier, later in pairwise(waits[:5]))
    assert 0.15 <= waits[0] <= 0.25
    assert all(3.75 <= wait <= 6.25 for wait in waits[6:])


@pytest.mark.parametrize("failures", [1, 3, 9])
def test_partitions_do_not_all_come_back_in_the_same_moment(failures):
    """Brokers that restart met every partition of every worker after 0.2, 0.4, 0.8 s and so on."""
    waits = [reopening_wait_s(number, failures) for number in range(100)]
    middle = sum(waits) / 100
    fullest = max(sum(start <= it < start + middle / 20 for it in waits) for start in waits)
    assert fullest < 30


def test_partition_that_fails_with_another_waits_for_another_time_at_the_next_failure():
    assert {reopening_wait_s(3, it) < reopening_wait_s(4, it) for it in FAILURES} == {True, False}


class Committing:
    """A partition that notes when it was committed."""

    topic, phase, state, incarnation = "records", Phase.READY, None, 1

    def __init__(self, number):
        self.number, self.is_late, self.at_s = number, False, []

    async def open(self, _):
        pass

    async def commit(self):
        self.at_s.append(asyncio.get_running_loop().time())
        return True


def committed_for(count, seconds, *, late=()):
    """Return the partitions after they were committed, each 0.1 s, for so long."""
    made = {}

    def make(number):
        made[number] = Committing(number)
        made[number].is_late = number in late
        return made[number]

    async def story():
        partitions = Partitions(make, 0.1, pytest.fail)
        await partitions.assign(set(range(count)), lambda: True)
        committing = asyncio.create_task(partitions.commit_forever())
        await asyncio.sleep(seconds)
        committing.cancel()

    run(story())
    return list(made.values())


def intervals(partition):
    return {round(later - at, 6) for at, later in pairwise(partition.at_s)}


@pytest.mark.parametrize("count", [1, 2, 3, 8, 50])
def test_each_partition_commits_once_in_every_interval(count):
    for each in committed_for(count, 2.05):
        assert intervals(each) == {0.1}


@pytest.mark.parametrize(("count", "together"), [(4, 1), (8, 1), (50, 7)])
def test_partitions_commit_one_after_the_other(count, together):
    """Symptom: 60 ms for a transaction of four that began at once, 35 for one that began alone."""
    begun = Counter(round(at_s, 6) for each in committed_for(count, 2.05) for at_s in each.at_s)
    assert max(begun.values()) == together


def test_partition_that_is_late_commits_each_half_second_and_the_others_as_ever():
    for each in committed_for(4, 5.05, late={1}):
        assert intervals(each) == {0.5 if each.is_late else 0.1}
