"""Makes a topic and loads made transcripts into it."""

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code

from processor.demo.transcripts import transcripts

PARTITIONS = 4
SESSIONS = 256
MAX_LINE_BYTES = 8_192
SEED = 7


async def create_topic(bootstrap: str, topic: str, **configs: str) -> None:
    """Create a topic; a broker's refusal is an error."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        settings = {name.replace("_", "."): value for name, value in configs.items()}
        new = NewTopic(topic, PARTITIONS, 1, topic_configs=settings)
        answer = await admin.create_topics([new])
    finally:
        await admin.close()
    for name, code, reason in answer.topic_errors:
        if code:
            error = for_code(code)
            message = f"could not create topic {name}: {reason}"
            raise error(message)


async def load(bootstrap: str, topic: str, count: int) -> int:
    """Load ``count`` lines of ``SESSIONS`` sessions into a new topic, keyed by session.

    Returns:
        The bytes of their values together.
    """
    await create_topic(bootstrap, topic, message_timestamp_type="LogAppendTime", retention_ms="-1")
    value_bytes = 0
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        linger_ms=20,
        max_batch_size=500_000,
    )
    await producer.start()
    try:
        lines = transcripts(count, SEED, sessions=SESSIONS, max_line_bytes=MAX_LINE_BYTES)
        sent = []
        for session, line in lines:
            sent.append(await producer.send(topic, line, key=session.encode()))
            value_bytes += len(line)
        await producer.flush()
        for delivery in sent:
            await delivery
    finally:
        await producer.stop()
    return value_bytes
