"""What a partition counts, warns of, and keeps for whoever looks at it."""

import pytest

from processor.core.errors import (
    StateError,
    UnreachableError,
)
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.dead_letter_limit import DeadLetterLimit
from processor.protocol.partition import RECENT_CHUNKS
from processor.protocol.port import Head
from tests.builders import WordCounter
from tests.unit.protocol.story import POLICY, Story, play, raw


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
        log = [
            raw(number, 1, key=key)._replace(value=value)
            for number, (key, value) in enumerate(lines)
        ]
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
