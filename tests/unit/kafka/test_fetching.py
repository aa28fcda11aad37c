"""What is taken from aiokafka's fetcher is stamped with where it stood and what asked for it."""

# ruff: noqa: SLF001 - what we plug into is private
import asyncio
import gc
import weakref
from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import FetchError, FetchResult, PartitionRecords
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.errors import CorruptRecordException, KafkaConnectionError, OffsetOutOfRangeError
from aiokafka.protocol.fetch import FetchRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from processor.kafka.fetched import take_fetched
from processor.kafka.fetching import Asking, BatchFetcher
from processor.protocol.port import Head
from processor.testing import FakeClock

TP = TopicPartition("records", 0)


class FakeClient:
    """Answers fetches as it is told."""

    _metadata_max_age_ms = 1000

    def __init__(self, clock):
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self.error = None
        self.asked = []
        self.answer = SimpleNamespace(topics=[])
        self.cluster = SimpleNamespace(leader_for_partition=lambda _: 1)

    async def send(self, node_id, _):
        self.asked.append((node_id, asyncio.get_running_loop().time()))
        self._clock.advance(2)
        if self.error is not None:
            raise self.error
        return self.answer


def batch_of(count, base_offset):
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for index in range(count):
        builder.append(index, timestamp=1000 + index, key=b"k", value=b"v%d" % index, headers=[])
    raw = bytearray(builder.build())
    raw[0:8] = base_offset.to_bytes(8, "big")
    return bytes(raw)


def with_fetcher(story, *, pace_s=0.0):
    async def run():
        clock = FakeClock()
        subscription = SubscriptionState()
        subscription.assign_from_user([TP])
        asking = Asking(clock, grace_ms=500, pace_s=pace_s)
        fetcher = BatchFetcher(FakeClient(clock), subscription, asking=asking)
        try:
            await story(fetcher, subscription.subscription.assignment, clock)
        finally:
            await fetcher.close()

    asyncio.run(run())


def put(fetcher, assignment, raw, offset, *, check_crcs=False):
    records = PartitionRecords(TP, MemoryRecords(raw), None, offset, None, None, check_crcs, 1)
    fetcher._records[TP] = FetchResult(
        TP, assignment=assignment, partition_records=records, backoff=0
    )


def test_a_batch_tells_its_positions_its_incarnation_and_raw_records():
    async def story(fetcher, assignment, clock):
        fetcher.seek(TP, 40, 7)
        put(fetcher, assignment, batch_of(3, 40), 40)
        (batch,) = fetcher.take([TP])
        assert (batch.first_offset, batch.next_offset, batch.incarnation) == (40, 43, 7)
        assert [(it.offset, it.key, it.value) for it in batch.records] == [
            (40, b"k", b"v0"),
            (41, b"k", b"v1"),
            (42, b"k", b"v2"),
        ]
        assert batch.arrived_at_ms == clock.now_ms()
        assert fetcher.take([TP]) == []

    with_fetcher(story)


def test_a_fetch_that_begins_inside_a_batch_gives_what_was_asked_for():
    async def story(fetcher, assignment, clock):
        fetcher.seek(TP, 41, 7)
        put(fetcher, assignment, batch_of(3, 40), 41)
        (batch,) = fetcher.take([TP])
        assert (batch.first_offset, batch.next_offset) == (41, 43)
        assert [it.offset for it in batch.records] == [41, 42]

    with_fetcher(story)


def test_several_batches_of_one_fetch_join_in_order_over_a_hole():
    async def story(fetcher, assignment, clock):
        fetcher.seek(TP, 40, 7)
        put(fetcher, assignment, batch_of(2, 40) + batch_of(2, 50), 40)
        (batch,) = fetcher.take([TP])
        assert (batch.first_offset, batch.next_offset) == (40, 52)
        assert [it.offset for it in batch.records] == [40, 41, 50, 51]

    with_fetcher(story)


def test_what_was_fetched_before_a_seek_is_not_taken_after_it():
    async def story(fetcher, assignment, clock):
        fetcher.seek(TP, 40, 7)
        put(fetcher, assignment, batch_of(3, 40), 40)
        fetcher.seek(TP, 20, 8)
        assert fetcher.take([TP]) == []
        assert TP not in fetcher._records

    with_fetcher(story)


def test_without_a_seek_nothing_is_taken_and_nobody_chooses_a_position():
    async def story(fetcher, assignment, clock):
        assert fetcher.take([TP]) == []
        await asyncio.sleep(0.12)
        assert not assignment.state_value(TP).has_valid_position

    with_fetcher(story)


def test_the_end_of_the_log_comes_with_the_time_before_it_was_asked_for():
    async def story(fetcher, assignment, clock):
        fetcher.seek(TP, 40, 7)
        asked_at_ms = clock.now_ms()
        fetcher._client._client.answer = SimpleNamespace(topics=[("records", [(0, 0, 44)])])
        await fetcher._client.send(1, FetchRequest(0, 0, 0, 1, [], rack_id=""))
        (batch,) = fetcher.take([TP])
        assert batch.head == Head(asked_at_ms - 500, 44)
        assert (batch.first_offset, batch.next_offset, list(batch.records)) == (40, 40, [])

    with_fetcher(story)


def test_an_answer_that_is_an_error_tells_no_end():
    async def story(fetcher, assignment, clock):
        fetcher.seek(TP, 40, 7)
        fetcher._client._client.answer = SimpleNamespace(topics=[("records", [(0, 6, -1)])])
        await fetcher._client.send(1, FetchRequest(0, 0, 0, 1, [], rack_id=""))
        assert fetcher.take([TP]) == []

    with_fetcher(story)


def test_the_end_of_the_log_comes_with_the_records_of_its_fetch():
    async def story(fetcher, assignment, clock):
        fetcher.seek(TP, 40, 7)
        fetcher._client._client.answer = SimpleNamespace(topics=[("records", [(0, 0, 43)])])
        await fetcher._client.send(1, FetchRequest(0, 0, 0, 1, [], rack_id=""))
        put(fetcher, assignment, batch_of(3, 40), 40)
        (batch,) = fetcher.take([TP])
        assert batch.head is not None
        assert (batch.next_offset, len(batch.records)) == (43, 3)

    with_fetcher(story)


def test_a_node_is_asked_for_records_at_a_pace_and_others_meanwhile():
    """Else, at 4,000 records a second, a fetch of every few takes a third of the worker's CPU."""

    async def story(fetcher, assignment, clock):
        asked = fetcher._client._client.asked
        fetch = FetchRequest(0, 0, 0, 1, [], rack_id="")
        await fetcher._client.send(1, fetch)
        again = asyncio.create_task(fetcher._client.send(1, fetch))
        await fetcher._client.send(2, fetch)
        await fetcher._client.send(1, "no fetch")
        await again
        assert [node for node, _ in asked] == [1, 2, 1, 1]
        assert asked[-1][1] - asked[0][1] >= 0.2

    with_fetcher(story, pace_s=0.2)


def test_a_position_that_is_gone_is_an_error_never_a_reset():
    async def story(fetcher, assignment, clock):
        fetcher.seek(TP, 40, 7)
        fetcher._records[TP] = FetchError(error=OffsetOutOfRangeError({TP: 40}), backoff=0)
        with pytest.raises(OffsetOutOfRangeError):
            fetcher.take([TP])

    with_fetcher(story)


def test_closing_before_the_first_seek_is_clean():
    """Symptom: a worker whose first opening failed hung on its way out.

    aiokafka awaits the tasks that it cancels on close; one that said so ended the consumer's
    thread half-way.
    """

    async def story(fetcher, assignment, clock):
        for _ in range(3):
            await asyncio.sleep(0)
        await fetcher.close()

    with_fetcher(story)


def test_closing_after_a_fetch_has_failed_is_clean():
    """Symptom: SIGTERM ended with 1 after 25 s where a connection had just been lost.

    aiokafka pauses after a failed fetch, and what is cancelled in that pause says so.
    """

    async def story(fetcher, assignment, clock):
        fetcher._client._client.error = KafkaConnectionError("lost")
        fetcher.seek(TP, 0, incarnation=1)
        for _ in range(20):
            await asyncio.sleep(0)
        [pausing] = fetcher._pending_tasks
        assert not pausing.done()
        await fetcher.close()

    with_fetcher(story)


def test_what_was_taken_does_not_keep_its_fetch_in_memory():
    """Symptom: 400 MB. aiokafka's records and their iterator refer to each other."""

    async def story(fetcher, assignment, clock):
        fetcher.seek(TP, 40, 7)
        put(fetcher, assignment, batch_of(3, 40), 40)
        fetched = weakref.ref(fetcher._records[TP]._partition_records)
        gc.disable()
        try:
            fetcher.take([TP])
            assert fetched() is None
        finally:
            gc.enable()

    with_fetcher(story)


def test_a_reader_without_a_group_takes_a_fetch_and_moves_behind_it():
    async def story(fetcher, assignment, _):
        assignment.state_value(TP).seek(5)
        put(fetcher, assignment, batch_of(3, 5), 5, check_crcs=True)
        records = await take_fetched(SimpleNamespace(_fetcher=fetcher), TP, 0)
        assert [it.value for it in records] == [b"v0", b"v1", b"v2"]
        assert assignment.state_value(TP).position == 8
        assert await take_fetched(SimpleNamespace(_fetcher=fetcher), TP, 0) == []

    with_fetcher(story)


def test_a_batch_that_does_not_fit_its_checksum_is_an_error_where_that_is_looked_at():
    async def story(fetcher, assignment, _):
        assignment.state_value(TP).seek(5)
        put(fetcher, assignment, batch_of(1, 5).replace(b"v0", b"vX"), 5, check_crcs=True)
        with pytest.raises(CorruptRecordException, match="records"):
            await take_fetched(SimpleNamespace(_fetcher=fetcher), TP, 0)
        assert assignment.state_value(TP).position == 5

    with_fetcher(story)
