"""What a producer's start may raise is an error of ours, so that the partition opens again."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError, ProducerFenced, TransactionalIdAuthorizationFailed

from processor.core.errors import ConfigError, FencedError, UnreachableError
from processor.kafka.producing import TransactionalProducer


@pytest.mark.parametrize(
    ("raised", "ours"),
    [
        (AssertionError("Did we not perform bootstrap?"), UnreachableError),
        (KafkaConnectionError(), UnreachableError),
        (TimeoutError(), UnreachableError),
        (ProducerFenced(), FencedError),
        (TransactionalIdAuthorizationFailed(), ConfigError),
    ],
)
def test_every_failure_to_start_is_translated(raised, ours, monkeypatch):
    """Symptom: a partition was closed for good after its broker had been frozen.

    A broker that comes back names no broker in its first answer, and aiokafka then asserts.
    """

    async def start(_):
        raise raised

    async def story():
        monkeypatch.setattr(AIOKafkaProducer, "start", start)
        producer = TransactionalProducer(
            {"bootstrap_servers": "127.0.0.1:1"}, "id", "records[0]", "none", max_batch_bytes=1000
        )
        with pytest.raises(ours, match=r"records\[0\]"):
            await producer.start(1.0)
        await producer.discard()

    asyncio.run(story())
