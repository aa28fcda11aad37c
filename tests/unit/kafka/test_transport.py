"""Faust's consumer at the moments that its own code does not expect."""

# ruff: noqa: SLF001 - what we plug into is private
import asyncio
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from processor.kafka.fetching import Asking, BatchConsumer
from processor.kafka.transport import Consumer, ConsumerThread
from processor.testing import FakeClock


def test_membership_is_not_asked_for_before_a_broker_has_answered():
    """Symptom: exit 1, `'NoneType' object has no attribute 'check_errors'`.

    Cause: the broker froze while the worker started, and aiokafka's consumer has no coordinator
    before it has been answered. Faust starts a service's tasks before the services it needs.
    """

    async def check():
        starting = BatchConsumer(asking=Asking(FakeClock(), grace_ms=0, pace_s=0))
        consumer = Consumer.__new__(Consumer)  # with what it has while it starts
        consumer._thread = SimpleNamespace(_ensure_consumer=lambda: starting)
        consumer.check_membership()
        await starting.stop()

    asyncio.run(check())


class Fetcher:
    """Has nothing to take until it is waited for; ``meanwhile`` happens during the wait."""

    _closed = False
    _subscriptions = SimpleNamespace(fetch_context=nullcontext)

    def __init__(self, meanwhile):
        self._meanwhile = meanwhile
        self.fetched = []
        self.position = 0

    def take(self, _):
        batches, self.fetched = self.fetched, []
        self.position += len(batches)
        return batches

    async def wait(self, _):
        self._meanwhile()
        self.fetched = [SimpleNamespace(partition=0)]


@pytest.mark.parametrize(("is_stopped", "position"), [(True, 0), (False, 1)])
def test_nothing_is_taken_when_the_flow_has_stopped_during_the_wait(is_stopped, position):
    """Symptom: exit 70, `a batch starts at 623, next is 620`, after two rebalances in a row.

    Cause: a wait for records outlasted the stop of the flow and the resumption of a partition,
    whose seek was its last; then what had been fetched from there was taken, which moved the
    position, and dropped, since the flow was still stopped for another partition's opening.
    """
    thread = ConsumerThread.__new__(ConsumerThread)
    thread.consumer = SimpleNamespace(flow_active=True)
    thread.app = SimpleNamespace(flow=SimpleNamespace(input_topic="records"))

    def meanwhile():
        thread.consumer.flow_active = not is_stopped

    fetcher = Fetcher(meanwhile)
    consumer = SimpleNamespace(_closed=False, fetcher=fetcher)
    fetched = asyncio.run(thread._fetch_records(consumer, {("records", 0)}, timeout=1.0))
    assert (len(fetched), fetcher.position) == (position, position)


def test_worker_that_stops_does_not_wait_for_a_group_that_never_settles(monkeypatch, caplog):
    """Symptom: exit 1, 25 s after SIGTERM, in a group that another member kept rebalancing.

    Cause: aiokafka finishes a join before it leaves, and a join takes as long as the slowest.
    """
    monkeypatch.setattr("processor.kafka.fetching._LEAVE_TIMEOUT_S", 0.05)
    ended = []

    class Coordinator:
        is_closing = False

        async def close(self):
            if self.is_closing:
                return
            self.is_closing = True
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("join")

        async def _stop_heartbeat_task(self):
            ended.append("heartbeat")

    async def check():
        consumer = BatchConsumer(asking=Asking(FakeClock(), grace_ms=0, pace_s=0))
        consumer._coordinator = Coordinator()
        await asyncio.wait_for(consumer.stop(), 5)

    asyncio.run(check())
    assert sorted(ended) == ["heartbeat", "join"]
    assert "did not let us go" in caplog.text
