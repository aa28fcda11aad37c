"""Asks brokers for the facts that the rules judge; changes nothing, and decides nothing."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code
from aiokafka.protocol.admin import ApiVersionRequest

from processor.doctor.brokers import BROKER_KEYS
from processor.doctor.facts import BrokerFacts, InputPartition, Replicas, Sample, Topic
from processor.doctor.topics import CONFIG_KEYS
from processor.kafka.connection import client_settings
from processor.kafka.flow import Flow
from processor.kafka.groups import offsets_in
from processor.kafka.reading import ends_of, partition_reader, read_to_end
from processor.kafka.topic_admin import facts_of, topic_configs
from processor.settings import Settings

ReplicasOf = Mapping[str, tuple[Replicas, ...]]


async def all_replicas(admin: AIOKafkaAdminClient) -> dict[str, tuple[Replicas, ...]]:
    """Return where the partitions of every topic are that there is, and that we see."""
    return {
        topic["topic"]: tuple(
            Replicas(it["partition"], it["leader"], len(it["replicas"]), len(it["isr"]))
            for it in sorted(topic["partitions"], key=lambda it: int(it["partition"]))
        )
        for topic in await admin.describe_topics()
    }


async def all_brokers(admin: AIOKafkaAdminClient) -> list[BrokerFacts]:
    """Return what every broker that runs says of itself."""
    cluster = await admin.describe_cluster()
    return [await _broker(admin, it["node_id"]) for it in cluster["brokers"]]


async def topics_named(
    admin: AIOKafkaAdminClient, names: Iterable[str], replicas: ReplicasOf
) -> dict[str, Topic]:
    """Return those topics that there are.

    Raises:
        ConfigError: The broker doesn't tell how they are set.
    """
    there = [name for name in names if name in replicas]
    configs = await topic_configs(admin, there, CONFIG_KEYS)
    return {
        name: Topic(facts_of(len(replicas[name]), values), values, replicas[name])
        for name, values in configs.items()
    }


async def input_partitions(
    settings: Settings, flow: Flow, numbers: Sequence[int], changelog_numbers: Iterable[int]
) -> list[InputPartition]:
    """Return where partitions of an app's input stand.

    Args:
        settings: How to connect.
        flow: Names topics and group.
        numbers: Of the partitions, which have a leader.
        changelog_numbers: Those of the changelog; none while there is no such topic, which then
            counts as empty.

    Raises:
        ConfigError: We may not read them.
        UnreachableError: No broker answers.
    """
    client = client_settings(settings)
    inputs = [TopicPartition(flow.input_topic, it) for it in numbers]
    changelogs = [TopicPartition(flow.changelog_topic, it) for it in changelog_numbers]
    committed = await offsets_in(settings, flow.group, flow.input_topic)
    async with partition_reader(client, *inputs, *changelogs) as reader:
        starts = await reader.beginning_offsets([*inputs, *changelogs])
        changelog_ends = await reader.end_offsets(changelogs) if changelogs else {}
    ends = await ends_of(client, flow.input_topic, numbers)
    return [
        InputPartition(
            it.partition,
            starts[it],
            ends[it.partition],
            committed.get(it.partition),
            starts.get(beside, 0),
            changelog_ends.get(beside, 0),
        )
        for it in inputs
        for beside in [TopicPartition(flow.changelog_topic, it.partition)]
    ]


async def fill_sample(
    settings: Settings, sample: Sample, partitions: Sequence[InputPartition], size: int
) -> None:
    """Read the newest committed records of an input, the same number of each partition.

    Args:
        settings: How to connect.
        sample: Names the input, and takes them.
        partitions: Those to read.
        size: Records to read, about, in all.

    Raises:
        ConfigError: We may not read them.
        UnreachableError: No broker answers.
    """
    client = client_settings(settings)
    share = -(-size // max(len(partitions), 1))
    for it in partitions:
        first = max(it.start, it.ends.stable - share)
        if first >= it.ends.stable:
            continue
        place = TopicPartition(sample.topic, it.number)
        async with partition_reader(client, place) as reader:
            reader.seek(place, first)
            async for records in read_to_end(reader, place, it.ends.stable):
                sample.add(it.number, records)


async def _broker(admin: AIOKafkaAdminClient, node_id: int) -> BrokerFacts:
    answer = await admin._send_request(ApiVersionRequest(), node_id)  # noqa: SLF001 - no public way
    versions = {key: newest for key, _, newest in answer.api_versions}
    keys: dict[str, Any] = dict.fromkeys(BROKER_KEYS)
    asked = ConfigResource(ConfigResourceType.BROKER, str(node_id), keys)
    [response] = await admin.describe_configs([asked])
    [(code, reason, _, _, entries)] = response.resources
    if code:
        return BrokerFacts(node_id, versions, hidden=reason or for_code(code).message)
    configs = {key: value for key, value, *_ in entries if value is not None}
    return BrokerFacts(node_id, versions, configs)
