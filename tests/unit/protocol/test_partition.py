"""What a partition writes, what it takes and what it refuses, over a broker in memory."""

from dataclasses import replace

import pytest

from processor.core.errors import (
    ConfigError,
    FencedError,
    StaleGenerationError,
    StateError,
    UnreachableError,
)
from processor.core.policy import ChunkPolicy, OrIdle
from processor.protocol.changelog import PARTITION_KEY, decode_partition
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.partition import Phase
from processor.protocol.port import Head, Survey, TooLargeError
from tests.builders import WordCounter
from tests.unit.protocol.story import POLICY, Story, play, raw


def test_chunks_entries_and_offset_land_in_one_transaction():
    async def story():
        it = Story()
        await it.open()
        it.feed(raw(0, 2), raw(1, 2), raw(2, 1, key=b"s2"), raw(3, 1, key=None))
        assert await it.partition.commit()
        (step,) = it.broker.transactions
        assert [(chunk["session"], chunk["t"]) for chunk in it.chunks] == [("s1", 1)]
        assert sorted(step.entries) == [PARTITION_KEY, b"s1"]
        assert len(step.dead_letters) == 1
        assert step.next_offset == 4
        entry = decode_partition(step.entries, "records[0]")
        assert (entry.low, entry.seen) == (1, 4)
        assert (entry.counts.records, entry.counts.chunked, entry.counts.dead_letters) == (3, 1, 1)

    play(story)


@pytest.mark.parametrize("failure", [FencedError("x"), UnreachableError("x"), ConfigError("x")])
def test_any_failure_drops_state_and_producer_and_the_next_opening_replays(failure):
    async def story():
        it = Story()
        await it.open()
        it.feed(raw(0, 2), raw(1, 2))
        it.broker.failure = failure
        with pytest.raises(type(failure)):
            await it.partition.commit()
        assert (it.partition.phase, it.partition.state) == (Phase.CLOSED, None)
        await it.open()
        assert it.broker.sought == (0, it.partition.incarnation)

    play(story)


def test_a_replay_rebuilds_what_was_open_and_neither_counts_nor_sets_aside_again():
    async def story():
        it = Story()
        await it.open()
        records = (raw(0, 1), raw(1, 1, key=None), raw(2, 1))
        it.feed(*records)
        await it.partition.commit()
        again = Story(broker=it.broker)
        await again.open()
        assert again.broker.sought[0] == 0
        again.feed(*records)
        again.feed(raw(3, 2))
        await again.partition.commit()
        assert [one["offset"] for one in again.chunks[-1]["records"]] == [0, 2]
        assert sum(len(step.dead_letters) for step in it.broker.transactions) == 1
        entry = decode_partition(it.broker.entries, "records[0]")
        assert (entry.counts.records, entry.counts.chunked) == (3, 2)

    play(story)


def test_a_batch_of_an_older_incarnation_is_not_taken():
    async def story():
        it = Story()
        await it.open()
        old = it.partition.incarnation
        await it.partition.close()
        await it.open()
        assert not it.feed(raw(0, 1), incarnation=old)
        assert it.feed(raw(0, 1))

    play(story)


def test_a_batch_that_leaves_a_gap_is_a_state_fault():
    async def story():
        it = Story()
        await it.open()
        with pytest.raises(StateError, match=r"records\[0\]: a batch starts at 5, next is 0"):
            it.feed(raw(5, 1), first=5)

    play(story)


def test_a_record_that_the_topic_refuses_is_left_out_the_next_time():
    async def story():
        it = Story()
        await it.open()
        it.feed(raw(0, 9))
        it.broker.failure = TooLargeError(0)
        with pytest.raises(TooLargeError):
            await it.partition.commit()
        await it.open()
        it.feed(raw(0, 9), raw(1, 9))
        await it.partition.commit()
        assert ["omitted" in chunk["records"][0] for chunk in it.chunks] == [True, False]
        assert it.metrics.counts["processor_omitted_records_total",] == 1

    play(story)


def test_headers_that_the_policy_names_are_carried_also_through_a_checkpoint():
    policy = replace(POLICY, carry_headers=("user-id",))

    async def story():
        config = ChunkerConfig("records", policy, WordCounter(), max_replay_records=0)
        it = Story(config)
        await it.open()
        it.feed(raw(0, 1, headers=[("user-id", b"ada"), ("other", b"1")]), raw(1, 1))
        await it.partition.commit()
        await it.partition.close()
        it.broker.log_end = 3
        await it.open()
        assert it.broker.sought == (2, it.partition.incarnation)
        it.feed(raw(2, 3))
        await it.partition.commit()
        assert [one.get("headers") for one in it.chunks[0]["records"]] == [{"user-id": "ada"}, None]

    play(story)


def test_a_held_partition_goes_on_where_it_was_without_a_fence():
    async def story():
        it = Story()
        await it.open()
        it.feed(raw(0, 1))
        await it.partition.hold(1.0)
        assert not it.feed(raw(1, 1))
        before = it.partition.incarnation
        await it.partition.resume(lambda: True)
        assert it.broker.sought == (1, it.partition.incarnation)
        assert it.partition.incarnation > before
        it.feed(raw(1, 3))
        await it.partition.commit()
        assert [one["offset"] for one in it.chunks[0]["records"]] == [0]

    play(story)


def test_a_partition_whose_last_commit_fails_while_it_is_held_is_closed():
    async def story():
        it = Story()
        await it.open()
        it.feed(raw(0, 9))
        it.broker.failure = FencedError("x")
        await it.partition.hold(1.0)
        assert it.partition.phase is Phase.CLOSED

    play(story)


def test_the_clock_closes_only_at_the_end_of_the_log():
    async def story():
        it = Story()
        await it.open()
        it.feed(raw(0, 1, at_s=100), head=Head(200_000, 2))
        await it.partition.commit()
        assert it.chunks == []
        it.feed(raw(1, 1, at_s=100, key=b"s2"), head=Head(131_000, 2))
        await it.partition.commit()
        assert [(chunk["session"], chunk["clock"]) for chunk in it.chunks] == [
            ("s1", True),
            ("s2", True),
        ]

    play(story)


def test_the_oldest_open_sessions_are_checkpointed_when_a_replay_would_be_too_long():
    async def story():
        it = Story(ChunkerConfig("records", POLICY, WordCounter(), max_replay_records=3))
        await it.open()
        it.feed(*[raw(n, 1, key=b"s%d" % n) for n in range(6)])
        await it.partition.commit()
        entry = decode_partition(it.broker.entries, "records[0]")
        assert (entry.low, entry.seen) == (3, 6)
        assert sorted(it.broker.entries) == [b"", b"s0", b"s1", b"s2"]
        again = Story(broker=it.broker)
        await again.open()
        assert again.partition.state.sessions.state("s0").records[0].offset == 0

    play(story)


def test_a_group_that_has_moved_on_ends_the_opening():
    async def story():
        it = Story()
        with pytest.raises(StaleGenerationError):
            await it.partition.open(lambda: False)
        assert it.broker.sought is None

    play(story)


def test_records_that_are_neither_in_a_chunk_nor_open_stop_the_partition():
    async def story():
        it = Story()
        await it.open()
        it.feed(raw(0, 1), raw(1, 1))
        it.partition.state.sessions.open_record_count -= 1
        with pytest.raises(StateError, match="2 records were read up to offset 2"):
            await it.partition.commit()
        assert it.broker.transactions == []

    play(story)


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"committed": 7}, StateError, "someone has reset the group"),
        ({"log_start": 1}, StateError, "retention has eaten records"),
        ({"stable_end": 1}, StateError, "was the topic deleted and created again"),
        ({"partition_count": 8}, ConfigError, "had 4 partitions and now has 8"),
        ({"timestamps": {1: 5}}, StateError, "the topic was deleted and created again"),
        ({"timestamps": {1: None}}, StateError, "the topic was deleted and created again"),
    ],
)
def test_a_world_that_does_not_fit_the_state_is_told_and_nothing_is_guessed(
    change, error, says, monkeypatch
):
    monkeypatch.setattr("processor.protocol.start_checks._SETTLE_WAIT_S", 0)

    async def story():
        it = Story()
        await it.open()
        it.feed(raw(0, 1), raw(1, 1))
        await it.partition.commit()
        facts = {
            "partition_count": 4,
            "log_start": 0,
            "stable_end": 2,
            "committed": 2,
            "timestamps": {1: 0},
        }

        async def survey(offsets):
            return Survey(**(facts | change))

        it.broker.survey = survey
        with pytest.raises(error, match=says):
            await it.open()

    play(story)


def test_another_policy_is_refused_until_it_is_accepted():
    async def story():
        it = Story()
        await it.open()
        it.feed(raw(0, 1))
        await it.partition.commit()
        wider = ChunkPolicy(max_tokens=9, flush=OrIdle(30))
        with pytest.raises(ConfigError, match="max_tokens 3 -> 9"):
            await Story(ChunkerConfig("records", wider, WordCounter()), it.broker).open()
        accepted = ChunkerConfig("records", wider, WordCounter(), accept_policy_change=True)
        await Story(accepted, it.broker).open()

    play(story)
