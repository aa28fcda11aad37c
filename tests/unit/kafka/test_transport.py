"""What Faust's consumer does with us while its own has not found a broker yet."""

import asyncio
from types import SimpleNamespace

from processor.kafka.fetching import BatchConsumer
from processor.kafka.transport import Consumer
from processor.testing import FakeClock


def test_membership_is_not_asked_for_before_a_broker_has_answered():
    """Symptom: exit 1, `'NoneType' object has no attribute 'check_errors'`.

    Cause: the broker froze while the worker started, and aiokafka's consumer has no coordinator
    before it has been answered. Faust starts a service's tasks before the services it needs.
    """

    async def check():
        starting = BatchConsumer(clock=FakeClock(), grace_ms=0)
        consumer = Consumer.__new__(Consumer)  # with what it has while it starts
        consumer._thread = SimpleNamespace(_ensure_consumer=lambda: starting)  # noqa: SLF001
        consumer.check_membership()
        await starting.stop()

    asyncio.run(check())
