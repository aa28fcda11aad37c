"""What a producer's start may raise is an error of ours, so that the partition opens again."""

# ruff: noqa: SLF001 - what fails there is private
import asyncio
import gc

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    IllegalOperation,
    KafkaConnectionError,
    ProducerFenced,
    TransactionalIdAuthorizationFailed,
)

from processor.core.errors import ConfigError, FencedError, UnreachableError
from processor.kafka.producing import Sending, TransactionalProducer
from processor.protocol.port import Message


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


def test_batches_that_fail_after_the_commit_are_nobodys_errors():
    """Symptom: `Future exception was never retrieved`, 64 times in three minutes of faults."""
    heard = []

    async def story():
        asyncio.get_running_loop().set_exception_handler(lambda _, it: heard.append(it))
        producer = TransactionalProducer(
            {"bootstrap_servers": "127.0.0.1:1"}, "id", "records[0]", "none", max_batch_bytes=1000
        )
        accumulator = producer._producer._message_accumulator
        at = TopicPartition("chunks", 0)
        accumulator._txn_manager.set_pid_and_epoch(1, 0)
        accumulator._txn_manager.begin_transaction()
        builder = accumulator.create_builder()
        builder.append(timestamp=0, key=b"s", value=b"chunk")
        sent = await accumulator.add_batch(builder, at, 1.0)
        sent.cancel()  # as a commit's time limit does
        await producer.discard()
        accumulator.fail_all(ProducerFenced())
        await asyncio.sleep(0)

    asyncio.run(story())
    gc.collect()
    assert not heard


def test_transaction_that_is_gone_while_its_batches_are_made_is_a_fence(monkeypatch):
    """Symptom: exit 70, `Can't send messages while not in transaction`.

    Cause: a zombie's first batch was fenced before its second one was handed over.
    """

    async def begin(_):
        pass

    async def send(*_, **__):
        raise IllegalOperation

    monkeypatch.setattr(AIOKafkaProducer, "begin_transaction", begin)
    monkeypatch.setattr(AIOKafkaProducer, "send_batch", send)
    sending = Sending(TopicPartition("any", 0), [Message(b"s", b"entry", ())])

    async def story():
        producer = TransactionalProducer(
            {"bootstrap_servers": "127.0.0.1:1"}, "id", "records[0]", "none", max_batch_bytes=1000
        )
        with pytest.raises(FencedError, match=r"records\[0\]"):
            await producer.commit([sending])
        await producer.discard()

    asyncio.run(story())
