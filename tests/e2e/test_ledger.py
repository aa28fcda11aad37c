"""Messages and a memory in one transaction: killed, fenced, refused."""

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from processor.core.errors import ConfigError, FencedError
from processor.kafka.ledger import Ledger, Outgoing, OutgoingTooLargeError
from processor.kafka.topics import describe_topic
from tests.e2e.log_reading import read_log

PARTITIONS = 3
# Killed once the broker has every message and entry, before it is asked to commit.
DIES = """
import asyncio, os, signal, sys
from aiokafka import AIOKafkaProducer
from processor.kafka.ledger import Ledger, Outgoing
from processor.settings import Settings

async def main():
    settings = Settings.model_validate_json(sys.argv[1])
    ledger = Ledger(settings, "one", settings.records_topic)
    await ledger.open()
    await ledger.commit([Outgoing(settings.records_topic, b"s", b"1")], {b"file": b"1"})

    async def die(_):
        os.kill(os.getpid(), signal.SIGKILL)

    AIOKafkaProducer.commit_transaction = die
    await ledger.commit([Outgoing(settings.records_topic, b"s", b"2")], {b"file": b"2"})

asyncio.run(main())
"""


@pytest.fixture
def positions(settings):
    """Settings with a topic of positions that is this test's alone."""
    name = f"{settings.app_id}.positions"
    return settings.model_copy(update={"positions_topic": name})


def values_of(settings):
    messages = asyncio.run(
        read_log(settings.bootstrap_servers, settings.records_topic, settled=True, patience_s=60)
    )
    return [it.value for it in messages]


def outgoing(settings, *values):
    return [Outgoing(settings.records_topic, b"s", value) for value in values]


def ledger(settings):
    return Ledger(settings, "one", settings.records_topic)


def test_killed_before_the_commit_it_has_sent_nothing(positions):
    arguments = [sys.executable, "-c", DIES, positions.model_dump_json()]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(  # noqa: S603 - our own code
        arguments, env=environment, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == -signal.SIGKILL, done.stderr

    async def story():
        it = ledger(positions)
        assert await it.open() == {b"file": b"1"}
        await it.commit(outgoing(positions, b"2"), {b"file": b"2"})
        assert await it.open() == {b"file": b"2"}
        await it.commit((), {b"file": None})
        assert await it.open() == {}
        await it.close()

    asyncio.run(story())
    assert values_of(positions) == [b"1", b"2"]


def test_older_one_of_the_name_is_fenced_and_the_newer_goes_on(positions):
    async def story():
        older, newer = ledger(positions), ledger(positions)
        await older.open()
        await newer.open()
        with pytest.raises(FencedError):
            await older.commit(outgoing(positions, b"old"), {b"file": b"old"})
        with pytest.raises(FencedError, match="another one runs under the name 'one'"):
            await older.open()
        with pytest.raises(FencedError):
            await newer.commit(outgoing(positions, b"new"), {b"file": b"new"})
        assert await newer.open() == {}
        await newer.commit(outgoing(positions, b"new"), {b"file": b"new"})
        await newer.close()

    asyncio.run(story())
    assert values_of(positions) == [b"new"]


def test_message_larger_than_the_topic_takes_names_itself_and_nothing_is_written(positions):
    positions = positions.model_copy(update={"compression": "none"})
    limit = asyncio.run(describe_topic(positions, positions.records_topic)).max_message_bytes
    messages = outgoing(positions, b"before", b"x" * (limit + 1), b"after")

    async def story():
        it = ledger(positions)
        await it.open()
        with pytest.raises(OutgoingTooLargeError) as error:
            await it.commit(messages, {b"file": b"3"})
        assert error.value.message is messages[1]
        assert await it.open() == {}
        # Together far more than the topic takes at once, each by itself well within.
        half = outgoing(positions, *[b"%d" % it + b"y" * (limit // 2) for it in range(5)])
        await it.commit(half, {b"file": b"5"})
        await it.close()

    asyncio.run(story())
    assert [value[:2] for value in values_of(positions)] == [b"%dy" % it for it in range(5)]


def test_topic_that_is_not_compacted_is_refused(positions):
    wrong = positions.model_copy(update={"positions_topic": positions.chunks_topic})
    with pytest.raises(ConfigError, match=r"cleanup\.policy=delete.*\n.*cleanup\.policy=compact"):
        asyncio.run(ledger(wrong).open())


def test_missing_topic_is_named_not_created(positions):
    async def story():
        for _ in range(2):  # one made by asking would be there the second time
            with pytest.raises(ConfigError, match="nowhere; create with"):
                await Ledger(positions, "one", f"{positions.app_id}.nowhere").open()

    asyncio.run(story())
