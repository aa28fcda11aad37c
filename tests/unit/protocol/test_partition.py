"""One partition over a broker in memory: what it writes, what it counts, what it refuses."""

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace

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
from processor.protocol.dead_letter_limit import DeadLetterLimit
from processor.protocol.partition import RECENT_CHUNKS, Partition, Phase
from processor.protocol.port import Batch, Head, Survey, TooLargeError
from processor.testing import FakeClock, RecordingMetrics
from tests.builders import WordCounter

POLICY = ChunkPolicy(max_tokens=3, flush=OrIdle(30))
CONFIG = ChunkerConfig("records", POLICY, WordCounter())


class MemoryBroker:
    """Keeps what was committed; fails the next commit with ``failure``."""

    def __init__(self):
        self.entries, self.transactions, self.sought = {}, [], None
        self.committed = self.failure = None
        self.log_end = 0

    async def fence(self):
        pass

    async def read_changelog(self, taker):
        taker.take(self.entries.items())

    async def survey(self, _):
        return Survey(4, 0, self.log_end, self.committed, {})

    async def seek(self, offset, incarnation):
        self.sought = (offset, incarnation)

    async def commit(self, transaction):
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        self.transactions.append(transaction)
        self.committed = self.log_end = transaction.next_offset
        for key, value in transaction.entries.items():
            self.entries[key] = value

    async def owns(self):
        return True

    async def discard(self):
        pass


def raw(offset, words, key=b"s1", at_s=0, headers=()):
    value = None if words is None else " ".join(["w"] * words).encode()
    return SimpleNamespace(
        offset=offset,
        timestamp=at_s * 1000,
        timestamp_type=1,
        key=key,
        value=value,
        headers=headers,
    )


class Story:
    """A partition, its broker, and the verbs of a test."""

    def __init__(self, config=CONFIG, broker=None):
        self.broker = broker or MemoryBroker()
        self.metrics, self.clock = RecordingMetrics(), FakeClock()
        self.partition = Partition(0, self.broker, config, self.clock, self.metrics)

    async def open(self):
        await self.partition.open(lambda: True)

    def feed(self, *records, incarnation=None, head=None, first=None):
        state = self.partition.state
        first = state.position if first is None else first
        following = records[-1].offset + 1 if records else first
        incarnation = self.partition.incarnation if incarnation is None else incarnation
        now_ms = self.clock.now_ms()
        return self.partition.feed(Batch(0, incarnation, first, following, records, now_ms, head))

    @property
    def chunks(self):
        return [json.loads(it.value) for step in self.broker.transactions for it in step.output]


def play(story):
    asyncio.run(story())


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


def test_what_is_counted_is_what_was_committed():
    async def story():
        it = Story()
        await it.open()
        it.feed(raw(0, 2), raw(1, 2), raw(2, 1, key=b"\xff"), raw(3, None))
        it.broker.failure = UnreachableError("no answer")
        with pytest.raises(UnreachableError):
            await it.partition.commit()
        assert it.metrics.counts["processor_records_total", "text"] == 0
        await it.open()
        it.feed(raw(0, 2), raw(1, 2), raw(2, 1, key=b"\xff"), raw(3, None))
        await it.partition.commit()
        assert it.metrics.counts == {
            ("processor_partition_openings_total", "fresh"): 2,
            ("processor_transactions_total", "failed"): 1,
            ("processor_transactions_total", "committed"): 1,
            ("processor_records_total", "text"): 2,
            ("processor_chunks_total", "tokens"): 1,
            ("processor_chunks_total", "end"): 1,
            ("processor_session_ends_total",): 1,
            ("processor_dead_letters_total", "key-not-utf8"): 1,
        }
        seen = it.metrics.observations
        assert seen["processor_chunk_tokens"] == [2, 2]
        assert seen["processor_records_per_chunk"] == [1, 1]
        assert len(seen["processor_transaction_duration_seconds"]) == 1

    play(story)


def test_latency_is_from_the_append_of_the_fetch_that_closed_a_chunk_to_its_commit():
    async def story():
        it = Story()
        await it.open()
        now_s = it.clock.now_ms() // 1000
        it.feed(raw(0, 2, at_s=now_s))
        await it.partition.commit()
        it.feed(raw(1, 2, at_s=now_s + 10), raw(2, 2, at_s=now_s + 11))
        it.feed(raw(3, 1, at_s=now_s + 12))
        it.clock.advance(13)
        await it.partition.commit()
        it.feed(raw(4, 1, key=b"s2", at_s=now_s + 13))
        it.clock.advance(1)
        await it.partition.commit()
        assert it.metrics.observations["processor_chunk_latency_seconds"] == [3]

    play(story)


def test_last_chunks_are_kept_with_when_they_were_committed():
    async def story():
        it = Story()
        await it.open()
        it.feed(*[raw(offset, 3) for offset in range(RECENT_CHUNKS + 5)])
        it.clock.advance(1)
        await it.partition.commit()
        assert len(it.partition.recent) == RECENT_CHUNKS
        at_ms, chunk = it.partition.recent[-1]
        assert at_ms == it.clock.now_ms()
        assert chunk == ("s1", RECENT_CHUNKS + 4, 1, 3, "tokens", False)
        await it.partition.close()
        assert it.partition.recent

    play(story)


def test_progress_is_a_commit_that_moved_on_and_no_reopening():
    async def story():
        it = Story()
        await it.open()
        opened_at_ms = it.partition.progressed_at_ms
        assert opened_at_ms == it.clock.now_ms()
        it.clock.advance(60)
        it.feed(raw(0, 1))
        it.broker.failure = UnreachableError("no answer")
        with pytest.raises(UnreachableError):
            await it.partition.commit()
        await it.open()
        assert it.partition.progressed_at_ms == opened_at_ms
        it.feed(raw(0, 1))
        await it.partition.commit()
        assert it.partition.progressed_at_ms == it.clock.now_ms()

    play(story)


def test_what_arrives_while_others_are_fetched_is_no_backlog():
    async def story():
        it = Story()
        assert it.partition.is_late
        await it.open()
        now_s = it.clock.now_ms() // 1000
        it.feed(raw(0, 1, at_s=now_s - 1), head=Head(now_s * 1000, 9))
        assert it.partition.is_late
        it.feed(raw(1, 1, at_s=now_s), head=Head(now_s * 1000, 9))
        assert not it.partition.is_late
        it.clock.advance(1)
        assert it.partition.is_late
        it.feed(raw(2, 1, at_s=now_s - 1), head=Head(now_s * 1000, 3))
        assert not it.partition.is_late

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


def test_too_many_dead_letters_stop_before_their_batch_and_a_restart_does_not_forget():
    async def story():
        config = ChunkerConfig(
            "records", POLICY, WordCounter(), dead_letter_limit=DeadLetterLimit(1, 5)
        )
        it = Story(config)
        await it.open()
        it.feed(*[raw(number, 1, key=None) for number in range(2)], raw(2, None, key=b""))
        await it.partition.commit()
        await it.partition.close()
        for _ in range(2):
            await it.open()
            with pytest.raises(StateError, match=r"records\[0\]@5: 6 .* from offset 0 on"):
                it.feed(raw(3, None, key=b"\xff"), raw(4, 1, key=None), raw(5, 1, key=None))
            assert it.partition.state.position == 3
            await it.partition.hold(1.0)
            await it.partition.close()
        assert sum(len(step.dead_letters) for step in it.broker.transactions) == 3
        await it.open()
        it.feed(raw(3, 1, key=None), raw(4, 1), *[raw(it, 1, key=None) for it in range(5, 10)])
        await it.partition.commit()
        assert sum(len(step.dead_letters) for step in it.broker.transactions) == 9

    play(story)


def test_dead_letters_of_a_replay_are_not_counted_toward_the_limit_again():
    async def story():
        config = ChunkerConfig(
            "records", POLICY, WordCounter(), dead_letter_limit=DeadLetterLimit(1, 3)
        )
        it = Story(config)
        log = [raw(0, 1), raw(1, 1, key=None), raw(2, 1, key=None), raw(3, 1, key=None)]
        for _ in range(3):
            await it.open()
            it.feed(*log)
            await it.partition.commit()
            await it.partition.close()
        await it.open()
        with pytest.raises(StateError, match=r"4 records in a row, from offset 1 on"):
            it.feed(*log, raw(4, 1, key=None))

    play(story)


def test_records_that_name_another_session_are_counted_once_and_stay_with_their_key(caplog):
    async def story():
        it = Story()
        await it.open()
        lines = [
            (b"s1", b'{"sessionId":"s1"}'),
            (b"s1", b'{"sessionId":"s2"}'),
            (b"s1", b'{"session_id":"s3"}'),
            (b"s1", b'{"agentId":"s1","sessionId":"s2"}'),
            (b"s1", b'{"payload":{"sessionId":"s2"}}'),
            (None, b'{"sessionId":"s2"}'),
            (b"s1", b'{"sessionId":"s4"}'),
        ]
        log = [raw(number, 1, key=key) for number, (key, _) in enumerate(lines)]
        for message, (_, value) in zip(log, lines, strict=True):
            message.value = value
        it.feed(*log[:6])
        await it.partition.commit()
        await it.partition.close()
        await it.open()
        it.feed(*log[it.partition.state.position :], first=it.partition.state.position)
        await it.partition.commit()
        assert it.metrics.counts["processor_session_mismatches_total",] == 3
        assert {chunk["session"] for chunk in it.chunks} == {"s1"}

    play(story)
    told = [it for it in caplog.records if "another session" in it.message]
    assert {(it.topic, it.partition, it.session) for it in told} == {("records", 0, "s1")}
    assert [it.offset for it in told] == [1, 6]


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
