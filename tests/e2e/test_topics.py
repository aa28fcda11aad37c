import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from processor.core.errors import ConfigError, UnreachableError
from processor.demo.local_broker import free_ports
from processor.kafka.topics import check_topics, create_topics, describe_topic
from processor.settings import Settings
from tests.e2e import asking


@pytest.fixture
def settings(settings_alone):
    return settings_alone


def create_by_hand(settings, name, partitions, **configs):
    made = asking.create_topic(settings.bootstrap_servers, name, partitions=partitions, **configs)
    asyncio.run(made)


def configs_of(settings, name):
    async def describe():
        async with asking.admin_client(settings.bootstrap_servers) as admin:
            (response,) = await admin.describe_configs(
                [ConfigResource(ConfigResourceType.TOPIC, name)]
            )
            return {key: value for key, value, *_ in response.resources[0][4]}

    return asyncio.run(describe())


def topics_of(settings):
    async def list_topics():
        async with asking.admin_client(settings.bootstrap_servers) as admin:
            return {name for name in await admin.list_topics() if settings.app_id in name}

    return asyncio.run(list_topics())


def names_of(settings):
    return [
        settings.records_topic,
        settings.chunks_topic,
        settings.changelog_topic,
        settings.dead_letter_topic,
    ]


def test_topics_are_created_once_and_then_found_right(settings):
    assert asyncio.run(create_topics(settings, partitions=3)) == names_of(settings)
    assert asyncio.run(create_topics(settings, partitions=5)) == []
    assert asyncio.run(check_topics(settings)).partition_count == 3


def test_created_topics_are_set_up_for_their_use(settings):
    asyncio.run(create_topics(settings, partitions=1, replication=1))
    records, chunks, changelog, dead_letter = (
        configs_of(settings, name) for name in names_of(settings)
    )
    assert records["message.timestamp.type"] == "LogAppendTime"
    assert [each["cleanup.policy"] for each in (records, chunks, changelog, dead_letter)] == [
        "delete",
        "delete",
        "compact",
        "delete",
    ]
    for each in (chunks, changelog, dead_letter):
        assert each["compression.type"] == "zstd"
        assert int(each["max.message.bytes"]) > int(records["max.message.bytes"])


def test_number_of_partitions_follows_records(settings):
    create_by_hand(settings, settings.records_topic, 2)
    created = asyncio.run(create_topics(settings, partitions=5, replication=1))
    assert created == names_of(settings)[1:]
    assert asyncio.run(check_topics(settings)).partition_count == 2


def test_large_chunks_get_a_topic_that_takes_them(settings):
    large = settings.model_copy(update={"max_chunk_bytes": 50_000_000})
    asyncio.run(create_topics(large, partitions=1))
    assert asyncio.run(check_topics(large)).partition_count == 1
    assert asyncio.run(describe_topic(large, large.chunks_topic)).max_message_bytes > 50_000_000


def test_check_creates_nothing(settings):
    """A question for the metadata of one topic by name would create it."""
    with pytest.raises(ConfigError, match="processor topics create"):
        asyncio.run(check_topics(settings))
    with pytest.raises(ConfigError, match="processor topics create"):
        asyncio.run(describe_topic(settings, settings.records_topic))
    assert topics_of(settings) == set()


def test_check_names_every_fault_with_its_remedy(settings):
    create_by_hand(settings, settings.records_topic, 2, cleanup_policy="compact,delete")
    create_by_hand(settings, settings.chunks_topic, 3, max_message_bytes="2000000")
    create_by_hand(settings, settings.changelog_topic, 2, max_message_bytes="1000")
    with pytest.raises(ConfigError) as error:
        asyncio.run(check_topics(settings))
    for part in (
        f"hidden from this user: {settings.dead_letter_topic}",
        f"{settings.records_topic} has cleanup.policy=compact,delete",
        f"{settings.chunks_topic} has 3 partitions, {settings.records_topic} has 2",
        f"{settings.changelog_topic} has cleanup.policy=delete",
        f"{settings.changelog_topic} takes messages of 1,000 bytes",
    ):
        assert part in str(error.value)


def test_topic_that_the_broker_refuses_is_named_with_its_reason(settings):
    with pytest.raises(ConfigError, match=rf"can't create {settings.records_topic}: .*eplica"):
        asyncio.run(create_topics(settings, replication=9))


def test_two_workers_can_create_at_once(settings):
    async def create_twice():
        return await asyncio.gather(*(create_topics(settings, partitions=2) for _ in range(2)))

    one, other = asyncio.run(create_twice())
    assert sorted(one + other) == sorted(names_of(settings))
    assert asyncio.run(check_topics(settings)).partition_count == 2


def test_broker_that_is_not_there_is_unreachable():
    [port] = free_ports(1)
    settings = Settings(bootstrap_servers=f"127.0.0.1:{port}", app_id="a")
    for call in (check_topics, create_topics):
        with pytest.raises(UnreachableError, match=f"no answer from 127.0.0.1:{port}"):
            asyncio.run(call(settings))


def test_record_of_the_created_topic_carries_the_time_of_the_broker(settings):
    asyncio.run(create_topics(settings, partitions=1))

    async def send():
        producer = AIOKafkaProducer(bootstrap_servers=settings.bootstrap_servers)
        await producer.start()
        try:
            return await producer.send_and_wait(settings.records_topic, b"x", timestamp_ms=1)
        finally:
            await producer.stop()

    sent = asyncio.run(send())
    assert sent.timestamp_type == 1
    assert sent.timestamp > 1_000_000_000_000
