"""The four topics: what they must be like, creating them, checking them.

Both work from the list of all topics: asking for the metadata of one by name makes a broker
with ``auto.create.topics.enable`` create it, with one partition and the wrong clean-up.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    NoError,
    NotControllerError,
    RequestTimedOutError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    for_code,
)

from processor.core.errors import ConfigError, UnreachableError
from processor.kafka.connection import admin_client
from processor.kafka.granted import require_rights
from processor.kafka.rights import FORBIDDEN, Operation, Right, missing_message
from processor.kafka.topic_checks import (
    ENVELOPE_BYTES,
    INT32_MAX,
    LARGER,
    TopicFacts,
    find_faults,
    missing_fault,
    topic_names,
)
from processor.settings import Settings

DEFAULT_PARTITIONS: Final = 4

_REPLICATION: Final = 3
_VISIBLE_WITHIN_S: Final = 15.0
_log = logging.getLogger(__name__)


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
        counts = await _partition_counts(admin)
        await _require(settings, admin, [name], operation)
        facts = await _describe(admin, {name: counts[name]} if name in counts else {})
    if name not in facts:
        raise ConfigError(missing_fault(settings, [name]))
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
    async with admin_client(settings) as admin:
        counts = await _partition_counts(admin)
        # What is hidden from us would look as if it were missing.
        await _require(settings, admin, topic_names(settings), "Describe")
        partitions = counts.get(settings.records_topic, partitions)
        if replication is None:
            replication = min(_REPLICATION, len((await admin.describe_cluster())["brokers"]))
        created = []
        if settings.records_topic not in counts:
            # LogAppendTime: the broker's clock is what makes boundaries recomputable.
            records = {"cleanup.policy": "delete", "message.timestamp.type": "LogAppendTime"}
            created += await _create(
                settings, admin, {settings.records_topic: records}, partitions, replication
            )
        facts = await _await_facts(admin, {settings.records_topic: partitions})
        wanted = _derived_topics(settings, facts[settings.records_topic].max_message_bytes)
        if missing := {name: wanted[name] for name in wanted if name not in counts}:
            created += await _create(settings, admin, missing, partitions, replication)
            await _await_facts(admin, dict.fromkeys(missing, partitions))
    for name in created:
        _log.info("created topic", extra={"topic": name, "partitions": partitions})
    return created


async def check_topics(settings: Settings) -> TopicFacts:
    """Check the four topics, creating none.

    Returns:
        The facts of the records topic, whose number of partitions all have.

    Raises:
        ConfigError: Something is wrong; the message lists every fault with its remedy.
        UnreachableError: No broker answers.
    """
    async with admin_client(settings) as admin:
        counts = await _partition_counts(admin)
        await _require(settings, admin, topic_names(settings), "Describe")
        there = {name: counts[name] for name in topic_names(settings) if name in counts}
        facts = await _describe(admin, there)
    if faults := find_faults(settings, facts):
        raise ConfigError("\n".join(faults))
    return facts[settings.records_topic]


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


async def _require(
    settings: Settings, admin: AIOKafkaAdminClient, names: Iterable[str], operation: Operation
) -> None:
    """Return if we may do that to topics, as far as they are there, and read how they are set."""
    needed: tuple[Operation, ...] = (operation, "DescribeConfigs")
    rights = [Right(each, "topic", name) for name in names for each in needed]
    await require_rights(settings, admin, rights)


async def _partition_counts(admin: AIOKafkaAdminClient) -> dict[str, int]:
    return {each["topic"]: len(each["partitions"]) for each in await admin.describe_topics()}


async def _create(
    settings: Settings,
    admin: AIOKafkaAdminClient,
    wanted: Mapping[str, dict[str, str]],
    partitions: int,
    replication: int,
) -> list[str]:
    """Create topics; return those that were missing."""
    response = await admin.create_topics(
        [
            NewTopic(name, partitions, replication, topic_configs=configs)
            for name, configs in wanted.items()
        ]
    )
    created = []
    forbidden, refused = [], []
    for name, code, reason in response.topic_errors:  # aiokafka raises none of these
        error = for_code(code)
        if error is NoError:
            created.append(name)
        elif error in (NotControllerError, RequestTimedOutError):
            msg = f"the broker could not create {name} now ({error.message}); try again"
            raise UnreachableError(msg)
        elif error in FORBIDDEN:
            forbidden.append(Right("Create", "topic", name))
        elif error is not TopicAlreadyExistsError:  # another worker was faster: just as well
            refused.append(f"can't create {name}: {reason or error.message}")
    if forbidden:
        raise ConfigError(missing_message(settings, forbidden))
    if refused:
        raise ConfigError("\n".join(refused))
    return created


async def _await_facts(
    admin: AIOKafkaAdminClient, counts: Mapping[str, int]
) -> dict[str, TopicFacts]:
    """Describe topics just created; brokers learn of them one after the other."""
    async with asyncio.timeout(_VISIBLE_WITHIN_S):
        # Nothing but asking again tells.
        while len(facts := await _describe(admin, counts)) < len(counts):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return facts


async def _describe(admin: AIOKafkaAdminClient, counts: Mapping[str, int]) -> dict[str, TopicFacts]:
    if not counts:
        return {}
    keys = dict.fromkeys(("cleanup.policy", "max.message.bytes", "retention.ms"))
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, keys) for name in counts]
    facts = {}
    for response in await admin.describe_configs(resources):
        for code, reason, _, name, entries in response.resources:
            if for_code(code) is UnknownTopicOrPartitionError:
                continue  # deleted since it was listed
            if code:
                msg = f"can't read the configuration of {name}: {reason or for_code(code).message}"
                raise ConfigError(msg)
            values = {key: value for key, value, *_ in entries}
            facts[name] = TopicFacts(
                partition_count=counts[name],
                cleanup_policies=frozenset(values["cleanup.policy"].split(",")),
                max_message_bytes=int(values["max.message.bytes"]),
                retention_ms=int(values["retention.ms"]),
            )
    return facts
