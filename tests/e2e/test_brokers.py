"""The brokers themselves: what every other test here takes for granted."""

import asyncio
import itertools
import os
import subprocess
import sys
import textwrap
import uuid

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from processor.core.errors import UnreachableError
from processor.demo.local_broker import LocalBroker, answers, free_ports
from tests.e2e import asking


async def create_topic(bootstrap):
    name = f"brokers-{uuid.uuid4().hex}"
    await asking.create_topic(bootstrap, name, partitions=1)
    return name


async def write_transactions(bootstrap, topic):
    """Write one transaction that is aborted and one that is committed."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    await producer.start()
    try:
        await producer.begin_transaction()
        await producer.send_and_wait(topic, b"aborted", partition=0)
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send_and_wait(topic, b"committed", partition=0)
    finally:
        await producer.stop()


async def read_to_the_end(bootstrap, topic, isolation_level):
    """Read by positions, not records: commit markers take offsets but are never delivered."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, isolation_level=isolation_level, enable_auto_commit=False
    )
    partition = TopicPartition(topic, 0)
    values = []
    async with asyncio.timeout(30):
        await consumer.start()
        try:
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            end = (await consumer.end_offsets([partition]))[partition]
            while await consumer.position(partition) < end:
                batches = await consumer.getmany(timeout_ms=200)
                values += [record.value for batch in batches.values() for record in batch]
        finally:
            await consumer.stop()
    return values


def test_only_a_committed_transaction_is_read_by_read_committed(broker):
    async def round_trip():
        topic = await create_topic(broker.bootstrap)
        await write_transactions(broker.bootstrap, topic)
        return [
            await read_to_the_end(broker.bootstrap, topic, level)
            for level in ("read_committed", "read_uncommitted")
        ]

    assert asyncio.run(round_trip()) == [[b"committed"], [b"aborted", b"committed"]]


def test_killed_broker_keeps_what_it_acknowledged(own_jvm_broker):
    bootstrap = own_jvm_broker.bootstrap

    async def write():
        topic = await create_topic(bootstrap)
        await write_transactions(bootstrap, topic)
        return topic

    topic = asyncio.run(write())
    own_jvm_broker.kill()
    assert not answers(own_jvm_broker.port)
    own_jvm_broker.start()
    assert own_jvm_broker.bootstrap == bootstrap
    assert asyncio.run(read_to_the_end(bootstrap, topic, "read_committed")) == [b"committed"]


def test_frozen_broker_is_silent_until_it_thaws(own_jvm_broker):
    own_jvm_broker.freeze()
    assert not answers(own_jvm_broker.port)
    own_jvm_broker.thaw()
    assert answers(own_jvm_broker.port)


def test_broker_ends_with_its_owner_however_the_owner_ends(tmp_path):
    owner = """
        import os, pathlib, signal, sys
        from processor.demo.brokers import start_embedded
        print(start_embedded(pathlib.Path(sys.argv[1])).port, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-c", textwrap.dedent(owner), str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    port = int(done.stdout)
    assert any(not answers(port) for _ in itertools.repeat(None, 100))


@pytest.mark.parametrize(
    ("script", "what"), [("echo broken; exit 3", "ended with status 3"), ("exec sleep 60", "0.3 s")]
)
def test_broker_that_does_not_come_up_says_why_and_is_gone(tmp_path, script, what):
    [port] = free_ports(1)
    broker = LocalBroker(
        name="jvm",
        command=["/bin/sh", "-c", f"echo log of the broker; {script}"],
        port=port,
        data_dir=tmp_path,
        temporary=False,
        patience_s=0.3,
    )
    with pytest.raises(UnreachableError, match=rf"{what}[^\n]*\n  log of the broker") as caught:
        broker.start()
    assert str(port) in str(caught.value)
    with pytest.raises(RuntimeError, match="isn't running"):
        broker.freeze()
