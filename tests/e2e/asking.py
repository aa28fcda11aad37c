"""What the tests ask of a broker and do to it, beside reading topics: groups, offsets, topics."""

from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code
from aiokafka.protocol.admin import DeleteGroupsRequest
from aiokafka.protocol.group import LeaveGroupRequest


@asynccontextmanager
async def admin_client(bootstrap):
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        await admin.start()
        yield admin
    finally:
        await admin.close()


async def create_topic(bootstrap, topic, *, partitions, **configs):
    """Create a topic; ``max_message_bytes=1`` stands for ``max.message.bytes``."""
    texts = {name.replace("_", "."): str(value) for name, value in configs.items()}
    async with admin_client(bootstrap) as admin:
        made = await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=texts)])
    _check(code for _, code, _ in made.topic_errors)


async def delete_topic(bootstrap, topic):
    async with admin_client(bootstrap) as admin:
        gone = await admin.delete_topics([topic])
    _check(code for _, code in gone.topic_error_codes)


async def grow_topic(bootstrap, topic, *, partitions):
    async with admin_client(bootstrap) as admin:
        await admin.create_partitions({topic: NewPartitions(partitions)})


async def delete_before(bootstrap, positions):
    """Delete records before an offset of each partition, as retention does."""
    async with admin_client(bootstrap) as admin:
        await admin.delete_records(
            {partition: RecordsToDelete(offset) for partition, offset in positions.items()}
        )


async def set_cleanup(bootstrap, topic, policy):
    """Set ``cleanup.policy``; whatever else was set of the topic is forgotten."""
    await set_configs(bootstrap, topic, cleanup_policy=policy)


async def set_configs(bootstrap, topic, **configs):
    """Set what is given, named as ``create_topic`` has it, and forget whatever else was set."""
    wanted = {"max.message.bytes": "3000000"}
    wanted |= {name.replace("_", "."): str(value) for name, value in configs.items()}
    async with admin_client(bootstrap) as admin:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, wanted)
        for done in await admin.alter_configs([resource]):
            _check(code for code, *_ in done.resources)


async def committed_offsets(bootstrap, group, partitions):
    """Return the group's offset of each partition, -1 where there is none."""
    async with admin_client(bootstrap) as admin:
        found = await admin.list_consumer_group_offsets(group, partitions=list(partitions))
    return {at: found[at].offset if at in found else -1 for at in partitions}


async def move_offsets(bootstrap, group, offsets):
    """Set a group's offsets as a person does with ``kafka-consumer-groups --reset-offsets``."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False
    )
    await consumer.start()
    try:
        consumer.assign(list(offsets))
        await consumer.commit(offsets)
    finally:
        await consumer.stop()


async def group_members(bootstrap, group):
    async with admin_client(bootstrap) as admin:
        [described] = await admin.describe_consumer_groups([group])
    [[_, _, _, _, _, members, *_]] = described.groups
    return [member_id for member_id, *_ in members]


async def leave_group(bootstrap, group, member_ids):
    """Take members out of a group in their stead."""
    async with admin_client(bootstrap) as admin:
        coordinator = await admin.find_coordinator(group)
        for member_id in member_ids:
            left = await admin._client.send(coordinator, LeaveGroupRequest(group, member_id))  # noqa: SLF001 - no public way
            _check([left.error_code])


async def delete_group(bootstrap, group):
    """Delete a group without members, its offsets with it."""
    async with admin_client(bootstrap) as admin:
        coordinator = await admin.find_coordinator(group)
        gone = await admin._client.send(coordinator, DeleteGroupsRequest([group]))  # noqa: SLF001 - no public way
    _check(code for _, code in gone.results)


def partitions_named(topic, count):
    return [TopicPartition(topic, number) for number in range(count)]


def _check(codes):
    for code in codes:
        if code:
            raise for_code(code)
