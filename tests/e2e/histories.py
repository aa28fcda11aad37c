"""Records, chunks and dead letters in the topics without a worker."""

import asyncio
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


def send_chunks(settings, lines, *, session="s", partition=0, commit=True):
    """Send chunks as a worker does."""
    messages = [(partition, session.encode(), line, ()) for line in lines]
    send(settings, settings.chunks_topic, messages, commit=commit)


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
