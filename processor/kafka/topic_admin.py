"""What is asked of a broker about topics: which there are, what they are like, to make some."""

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
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    for_code,
)

from processor.core.errors import ConfigError, UnreachableError
from processor.kafka.granted import require_rights
from processor.kafka.rights import FORBIDDEN, Operation, Right
from processor.kafka.topic_checks import TopicFacts
from processor.settings import Settings

#: What ``TopicFacts`` are made of.
TOPIC_KEYS: Final = ("cleanup.policy", "max.message.bytes", "retention.ms")
_REPLICATION: Final = 3
_VISIBLE_WITHIN_S: Final = 15.0
_log = logging.getLogger(__name__)


async def partition_counts(admin: AIOKafkaAdminClient) -> dict[str, int]:
    """Return how many partitions each topic has that there is."""
    return {each["topic"]: len(each["partitions"]) for each in await admin.describe_topics()}


async def require_operations(
    settings: Settings, admin: AIOKafkaAdminClient, names: Iterable[str], *operations: Operation
) -> None:
    """Return if we may do that to topics, as far as they are there, and read how they are set.

    Raises:
        ConfigError: A right is missing; what is hidden from us would look as if it were missing.
    """
    needed: tuple[Operation, ...] = (*operations, "DescribeConfigs")
    rights = [Right(each, "topic", name) for name in names for each in needed]
    await require_rights(settings, admin, rights)


async def usual_replication(admin: AIOKafkaAdminClient) -> int:
    """Return three, or the number of brokers if that is less."""
    return min(_REPLICATION, len((await admin.describe_cluster())["brokers"]))


async def create_missing(
    admin: AIOKafkaAdminClient,
    wanted: Mapping[str, dict[str, str]],
    counts: Mapping[str, int],
    partitions: int,
    replication: int,
) -> list[str]:
    """Create those topics that ``counts`` does not name, and wait until they are seen.

    Returns:
        Names of those created.

    Raises:
        ConfigError: The broker refuses one.
        TopicAuthorizationFailedError: We lack the right; our caller knows how to say so.
        UnreachableError: It can't create them now.
    """
    missing = {name: wanted[name] for name in wanted if name not in counts}
    if not missing:
        return []
    created = await _create(admin, missing, partitions, replication)
    await await_facts(admin, dict.fromkeys(missing, partitions))
    for name in created:
        _log.info("created topic", extra={"topic": name, "partitions": partitions})
    return created


async def _create(
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
            forbidden.append(name)
        elif error is not TopicAlreadyExistsError:  # another worker was faster: just as well
            refused.append(f"can't create {name}: {reason or error.message}")
    if forbidden:
        raise TopicAuthorizationFailedError(forbidden)
    if refused:
        raise ConfigError("\n".join(refused))
    return created


async def await_facts(
    admin: AIOKafkaAdminClient, counts: Mapping[str, int]
) -> dict[str, TopicFacts]:
    """Describe topics just created; brokers learn of them one after the other."""
    async with asyncio.timeout(_VISIBLE_WITHIN_S):
        # Nothing but asking again tells.
        while len(facts := await describe(admin, counts)) < len(counts):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return facts


async def describe(admin: AIOKafkaAdminClient, counts: Mapping[str, int]) -> dict[str, TopicFacts]:
    """Return the facts of topics, named with their partitions, that are there.

    Raises:
        ConfigError: The broker does not tell.
    """
    found = await topic_configs(admin, counts, TOPIC_KEYS)
    return {name: facts_of(counts[name], values) for name, values in found.items()}


def facts_of(partition_count: int, configs: Mapping[str, str]) -> TopicFacts:
    """Return the facts of a topic whose ``TOPIC_KEYS`` are known."""
    return TopicFacts(
        partition_count=partition_count,
        cleanup_policies=frozenset(configs["cleanup.policy"].split(",")),
        max_message_bytes=int(configs["max.message.bytes"]),
        retention_ms=int(configs["retention.ms"]),
    )


async def topic_configs(
    admin: AIOKafkaAdminClient, names: Iterable[str], keys: Iterable[str]
) -> dict[str, dict[str, str]]:
    """Return what is set of topics, of those that are there.

    Args:
        admin: To ask with.
        names: Of topics.
        keys: Of settings; one that the broker doesn't know is left out.

    Raises:
        ConfigError: The broker does not tell.
    """
    wanted = dict.fromkeys(keys)
    resources = [ConfigResource(ConfigResourceType.TOPIC, name, wanted) for name in names]
    found = {}
    for response in await admin.describe_configs(resources):
        for code, reason, _, name, entries in response.resources:
            if for_code(code) is UnknownTopicOrPartitionError:
                continue  # deleted since it was listed
            if code:
                msg = f"can't read the configuration of {name}: {reason or for_code(code).message}"
                raise ConfigError(msg)
            found[name] = {key: value for key, value, *_ in entries}
    return found
