"""The topics of the worker and of the router: creating them, checking them.

Both work from the list of all topics: asking for the metadata of one by name makes a broker
with ``auto.create.topics.enable`` create it, with one partition and the wrong clean-up.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient

from processor.core.errors import ConfigError
from processor.kafka.connection import admin_client
from processor.kafka.rights import Operation
from processor.kafka.topic_admin import (
    await_facts,
    create_missing,
    describe,
    partition_counts,
    require_operations,
    usual_replication,
)
from processor.kafka.topic_checks import (
    ENVELOPE_BYTES,
    INT32_MAX,
    LARGER,
    TopicFacts,
    compaction_faults,
    find_faults,
    find_route_faults,
    missing_fault,
    route_topic_names,
    topic_names,
)
from processor.settings import Settings

DEFAULT_PARTITIONS: Final = 4


async def describe_topic(
    settings: Settings, name: str, operation: Operation = "Read"
) -> TopicFacts:
    """Return the facts of one topic, creating none.

    Args:
        settings: How to connect.
        name: Of the topic.
        operation: What is to be done with it.

    Raises:
        ConfigError: There is no such topic, or we are not allowed that.
        UnreachableError: No broker answers.
    """
    async with admin_client(settings) as admin:
        counts = await partition_counts(admin)
        await require_operations(settings, admin, [name], operation)
        facts = await describe(admin, {name: counts[name]} if name in counts else {})
    if name not in facts:
        raise ConfigError(str(missing_fault(settings, [name])))
    return facts[name]


async def has_topic(settings: Settings, name: str) -> bool:
    """Tell whether there is a topic, creating none.

    Raises:
        ConfigError: We may not read it.
        UnreachableError: No broker answers.
    """
    async with admin_client(settings) as admin:
        await require_operations(settings, admin, [name], "Read")
        return name in await partition_counts(admin)


async def ensure_compacted_topic(settings: Settings, name: str) -> TopicFacts:
    """Create a topic of entries by key if there is none, of one partition; check it if there is.

    Returns:
        Its facts.

    Raises:
        ConfigError: It is not compacted alone, or the broker refuses to create it, or we lack a
            right.
        UnreachableError: No broker answers.
    """
    async with admin_client(settings, "Create") as admin:
        counts = await partition_counts(admin)
        await require_operations(settings, admin, [name], "Read", "Write")
        wanted = {name: {"cleanup.policy": "compact"}}
        await create_missing(admin, wanted, counts, 1, await usual_replication(admin))
        facts = await await_facts(admin, {name: counts.get(name, 1)})
    if faults := compaction_faults(settings, name, facts[name]):
        raise ConfigError("\n".join(map(str, faults)))
    return facts[name]


async def create_topics(
    settings: Settings, *, partitions: int = DEFAULT_PARTITIONS, replication: int | None = None
) -> list[str]:
    """Create those of the four topics that are missing.

    Args:
        settings: Name the topics and the brokers.
        partitions: Partitions of each; where ``records`` exists, its number counts instead.
        replication: Copies of each partition; three, or the number of brokers if that is less,
            when not given.

    Returns:
        Names created, ``records`` first; empty when all were there.

    Raises:
        ConfigError: The broker refuses a topic, or we lack a right.
        UnreachableError: No broker answers.
    """
    async with admin_client(settings, "Create") as admin:
        counts = await partition_counts(admin)
        await require_operations(settings, admin, topic_names(settings), "Describe")
        replication = replication or await usual_replication(admin)
        created, records = await _create_records(admin, settings, counts, partitions, replication)
        wanted = _derived_topics(settings, records.max_message_bytes)
        count = records.partition_count
        return created + await create_missing(admin, wanted, counts, count, replication)


async def create_route_topics(
    settings: Settings, *, partitions: int = DEFAULT_PARTITIONS, replication: int | None = None
) -> list[str]:
    """Create those topics of ``processor route`` that are missing.

    Telemetry gets one partition: then what has no key has an order.

    Args:
        settings: Name the topics and the brokers.
        partitions: Of ``records`` and the dead letters, as in ``create_topics``.
        replication: Likewise.

    Returns:
        Names created; empty when all were there.

    Raises:
        ConfigError: The broker refuses a topic, or we lack a right.
        UnreachableError: No broker answers.
    """
    async with admin_client(settings, "Create") as admin:
        counts = await partition_counts(admin)
        await require_operations(settings, admin, route_topic_names(settings), "Describe")
        replication = replication or await usual_replication(admin)
        created, records = await _create_records(admin, settings, counts, partitions, replication)
        derived = _derived_topics(settings, records.max_message_bytes)
        telemetry_count = counts.get(settings.telemetry_topic, 1)
        for name, configs, count in (
            (
                settings.dead_letter_topic,
                derived[settings.dead_letter_topic],
                records.partition_count,
            ),
            (settings.telemetry_topic, {"cleanup.policy": "delete"}, telemetry_count),
            (settings.routes_changelog_topic, derived[settings.changelog_topic], telemetry_count),
        ):
            created += await create_missing(admin, {name: configs}, counts, count, replication)
    return created


async def check_topics(settings: Settings) -> TopicFacts:
    """Check the four topics, creating none.

    Returns:
        The facts of the records topic, whose number of partitions all have.

    Raises:
        ConfigError: Something is wrong; the message lists every fault with its remedy.
        UnreachableError: No broker answers.
    """
    facts = await _facts(settings, topic_names(settings))
    if faults := find_faults(settings, facts):
        raise ConfigError("\n".join(map(str, faults)))
    return facts[settings.records_topic]


async def check_route_topics(settings: Settings) -> Mapping[str, TopicFacts]:
    """Check the topics of ``processor route``, creating none.

    Returns:
        The facts of each, by name.

    Raises:
        ConfigError: Something is wrong; the message lists every fault with its remedy.
        UnreachableError: No broker answers.
    """
    facts = await _facts(settings, route_topic_names(settings))
    if faults := find_route_faults(settings, facts):
        raise ConfigError("\n".join(map(str, faults)))
    return facts


async def _facts(settings: Settings, names: Iterable[str]) -> dict[str, TopicFacts]:
    """Return the facts of those topics that there are."""
    async with admin_client(settings) as admin:
        counts = await partition_counts(admin)
        await require_operations(settings, admin, names, "Describe")
        return await describe(admin, {name: counts[name] for name in names if name in counts})


async def _create_records(
    admin: AIOKafkaAdminClient,
    settings: Settings,
    counts: Mapping[str, int],
    partitions: int,
    replication: int,
) -> tuple[list[str], TopicFacts]:
    """Create the records topic if it is missing; return what was created, and its facts."""
    name = settings.records_topic
    # LogAppendTime: the broker's clock is what makes boundaries recomputable.
    wanted = {name: {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"}}
    created = await create_missing(admin, wanted, counts, partitions, replication)
    facts = await await_facts(admin, {name: counts.get(name, partitions)})
    return created, facts[name]


def _derived_topics(settings: Settings, record_limit_bytes: int) -> dict[str, dict[str, str]]:
    """Return the topics that carry what was in ``records``, with their configuration."""
    limit = max(LARGER * record_limit_bytes, settings.max_chunk_bytes + ENVELOPE_BYTES)
    # zstd: a topic limit of 1 MB holds back 1 MB compressed, which may be 12 MB of record.
    common = {"max.message.bytes": str(min(limit, INT32_MAX)), "compression.type": "zstd"}
    return {
        settings.chunks_topic: common | {"cleanup.policy": "delete"},
        settings.changelog_topic: common | {"cleanup.policy": "compact"},
        settings.dead_letter_topic: common | {"cleanup.policy": "delete"},
    }
