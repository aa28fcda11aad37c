import asyncio
import json
import os
import subprocess
import sys
import uuid

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.history import Message, chunks_of, letters_of

PARTITIONS = 2


def items(count, sessions=7):
    """What is sent: (partition, key, value), with ends and records without a session."""
    for number in range(count):
        partition = number % PARTITIONS
        key = f"s{number % sessions}-{partition}".encode()
        value = None if number % 97 == 96 else b"%d " % number + b"x" * (number * 7 % 60)
        yield partition, None if number % 101 == 100 else key, value


def send(settings, topic, messages, *, commit=True):
    """Send in one transaction."""

    async def run():
        producer = AIOKafkaProducer(
            bootstrap_servers=settings.bootstrap_servers,
            transactional_id=uuid.uuid4().hex,
            max_request_size=1 << 24,
        )
        await producer.start()
        try:
            await producer.begin_transaction()
            for partition, key, value, headers in messages:
                await producer.send(topic, value, key, partition, headers=list(headers))
            await producer.flush()
            await (producer.commit_transaction() if commit else producer.abort_transaction())
        finally:
            await producer.stop()

    asyncio.run(run())


def read(settings, topic, partition, count):
    async def run():
        consumer = AIOKafkaConsumer(
            bootstrap_servers=settings.bootstrap_servers, isolation_level="read_committed"
        )
        await consumer.start()
        try:
            place = TopicPartition(topic, partition)
            consumer.assign([place])
            await consumer.seek_to_beginning()
            found = [await anext(consumer) for _ in range(count)]
        finally:
            await consumer.stop()
        return [
            Message(it.offset, it.key, it.value, it.timestamp, it.headers, it.timestamp_type)
            for it in found
        ]

    return asyncio.run(run())


def run_history(settings, count=1000, spoil=lambda chunks: chunks):
    """Send records, and the chunks and dead letters that a right worker makes of them."""
    sent = list(items(count))
    send(settings, settings.records_topic, [(*it, ()) for it in sent[: count // 2]])
    send(settings, settings.records_topic, [(*it, ()) for it in sent[:50]], commit=False)
    send(settings, settings.records_topic, [(*it, ()) for it in sent[count // 2 :]])
    for partition in range(PARTITIONS):
        mine = sum(1 for it in sent if it[0] == partition)
        log = read(settings, settings.records_topic, partition, mine)
        source = (settings.records_topic, partition)
        made = {
            settings.chunks_topic: spoil(chunks_of(log, source=source)),
            settings.dead_letter_topic: letters_of(log, *source),
        }
        for topic, messages in made.items():
            rows = [(partition, it.key, it.value, it.headers) for it in messages]
            send(settings, topic, rows, commit=False)
            send(settings, topic, rows)


def verify(settings, *args):
    return subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "processor", "verify", *args],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "KAFKA_BOOTSTRAP_SERVERS": settings.bootstrap_servers,
            "PROCESSOR_RECORDS_TOPIC": settings.records_topic,
            "PROCESSOR_CHUNKS_TOPIC": settings.chunks_topic,
            "PROCESSOR_DEAD_LETTER_TOPIC": settings.dead_letter_topic,
        },
    )


def test_right_chunks_are_verified(settings):
    run_history(settings)
    done = verify(settings, "--app-id", settings.app_id)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("verified: 981 records in 14 sessions -> ")
    assert "; 0 missing, 0 repeated, 0 out of order, " in last
    assert last.endswith(" open")
    assert "beside: 10 ends of session" in done.stdout
    assert "beside: 9 records without a session" in done.stdout
    assert done.stderr == ""


def test_nothing_at_all_is_verified(settings):
    done = verify(settings)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "verified: 0 records in 0 sessions -> 0 chunks; 0 missing, 0 repeated, 0 out of order\n"
    )


def test_spoiled_chunks_are_told_with_their_place(settings):
    def spoil(chunks):
        altered = chunks[5]._replace(value=chunks[5].value.replace(b"xxx", b"xxy", 1))
        return [*chunks[:3], *chunks[4:5], altered, chunks[6], *chunks[6:]]

    run_history(settings, spoil=spoil)
    done = verify(settings)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1].startswith("NOT verified: 981 records")
    assert f"altered: {settings.chunks_topic}[0]@" in done.stdout
    found = json.loads(verify(settings, "--output", "json").stdout)
    assert found["ok"] is False
    assert found["faults"]["altered"] == PARTITIONS
    assert found["faults"]["missing"] > 0
    assert found["faults"]["repeated"] > 0
    assert found["unaccounted_count"] == 0


def test_key_on_two_partitions_is_a_warning(settings):
    rows = [(partition, b"same", b"x", ()) for partition in range(PARTITIONS)]
    send(settings, settings.records_topic, rows)
    done = verify(settings)
    assert done.returncode == 0
    assert done.stdout.startswith("warning: 1 keys are on several partitions")


def test_missing_topic_is_named_not_created(settings):
    nowhere = settings.model_copy(update={"chunks_topic": f"{settings.app_id}.none"})
    for _ in range(2):
        done = verify(nowhere)
        assert done.returncode == 78
        assert f"{settings.app_id}.none; create with" in done.stderr
