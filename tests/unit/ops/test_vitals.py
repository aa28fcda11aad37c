"""What is read of partitions, and of when nothing is known."""

import asyncio
from dataclasses import replace

import pytest

from processor.ops.vitals import VitalsReader
from tests.unit.ops.seeing import Seen
from tests.unit.protocol import routers
from tests.unit.protocol.story import CONFIG


def play(story):
    asyncio.run(story())


def test_worker_that_has_no_consumer_yet_has_joined_nothing():
    it = Seen()
    vitals = VitalsReader(it.partitions, it.clock, lambda: None, list).read()
    assert (vitals.is_joined, vitals.answered_s_ago, vitals.partitions) == (False, None, [])


def test_partition_that_is_not_open_tells_its_phase_alone():
    async def story():
        it = Seen()
        await it.assign()
        await it.story.partition.close()
        assert it.now()[:4] == (0, "closed", None, None)

    play(story)


def test_lag_is_from_our_position_to_the_last_stable_offset():
    async def story():
        it = Seen()
        await it.assign()
        assert it.now().lag_records is None
        it.feed(it.raw(0, 1))
        it.member.ends[0] = 5
        assert (it.now().position, it.now().stable_end, it.now().lag_records) == (1, 5, 4)
        it.feed(*[it.raw(offset, 1) for offset in range(1, 7)])
        assert it.now().lag_records == 0

    play(story)


def test_lag_in_time_is_none_with_nothing_left_and_else_the_age_of_what_was_read_last():
    async def story():
        it = Seen()
        await it.assign()
        it.member.ends[0] = 2
        it.feed(it.raw(0, 1))
        it.clock.advance(90)
        assert it.now().lag_s == 90
        it.feed(it.raw(1, 1))
        assert it.now().lag_s == 0

    play(story)


def test_record_after_an_idle_hour_is_not_an_hour_behind():
    async def story():
        it = Seen()
        await it.assign()
        it.feed(it.raw(0, 1), at_end=True)
        it.clock.advance(3600)
        it.feed(at_end=True)
        it.clock.advance(2)
        it.member.ends[0] = 2
        assert (it.now().lag_records, it.now().lag_s) == (1, 2)

    play(story)


@pytest.mark.parametrize(("waited_s", "state"), [(1, "ready"), (60, "catching up")])
def test_partition_is_behind_once_what_it_read_is_old(waited_s, state):
    async def story():
        it = Seen()
        await it.assign()
        it.feed(it.raw(0, 1))
        it.member.ends[0] = 2
        it.clock.advance(waited_s)
        assert it.now().state == state

    play(story)


def test_open_chunks_are_told_with_their_age_and_how_long_one_is_due():
    async def story():
        it = Seen()
        await it.assign()
        it.feed(it.raw(0, 1), it.raw(1, 1, key=b"s2"))
        it.clock.advance(20)
        it.feed(it.raw(2, 1, key=b"s2"), it.raw(3, 4, key=b"s3"))
        it.clock.advance(20)
        now = it.now()
        assert (now.session_count, now.open_session_count, now.open_record_count) == (3, 2, 3)
        assert (now.oldest_open_s, now.overdue_s) == (40, 10)
        assert (now.unaccounted_record_count, now.staged_bytes > 0) == (0, True)

    play(story)


def test_record_that_vanished_is_told():
    async def story():
        it = Seen()
        await it.assign()
        it.feed(it.raw(0, 1))
        it.story.partition.state.sessions.forget("s1")
        assert it.now().unaccounted_record_count == 1

    play(story)


def test_duplicates_are_accounted_for_before_and_after_a_commit():
    async def story():
        it = Seen(replace(CONFIG, policy=replace(CONFIG.policy, deduplicate_records=10)))
        await it.assign()
        again = {"headers": [("record-id", b"1")]}
        it.feed(it.raw(0, 1, **again), it.raw(1, 1, **again), it.raw(2, 1))
        before = it.now()
        await it.story.partition.commit()
        assert it.story.partition.state.counts.duplicates == 1
        assert [before.unaccounted_record_count, it.now().unaccounted_record_count] == [0, 0]

    play(story)


def test_partition_of_a_router_tells_its_position_and_lag():
    async def story():
        it = Seen(routers.config())
        await it.assign()
        it.feed(it.raw(0, 1), it.raw(1, 1))
        it.member.ends[0] = 5
        it.clock.advance(60)
        now = it.now()
        assert (now.state, now.position, now.lag_records, now.lag_s) == ("catching up", 2, 3, 60)
        assert (now.session_count, now.staged_bytes > 0) == (0, True)
        it.member.ends[0] = 2
        it.feed(at_end=True)
        it.clock.advance(5)
        it.member.ends[0] = 3
        assert (it.now().state, it.now().lag_s) == ("ready", 5)

    play(story)
