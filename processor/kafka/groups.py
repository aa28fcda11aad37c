"""What the consumer group's coordinator knows: members and offsets."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
    for_code,
)

from processor.core.errors import UnreachableError
from processor.kafka.connection import admin_client
from processor.kafka.group_description import GroupDescription, describe_group
from processor.settings import Settings

#: The first group of a new broker waits until the topic of offsets is made.
_PATIENCE_S: Final = 20.0
_PAUSE_S: Final = 0.2
_SOON: Final = (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
)
_NO_OFFSET: Final = -1
_Answer = TypeVar("_Answer")


async def group_offsets(settings: Settings) -> dict[int, int]:
    """Return the group's offset of each partition of records that has one.

    Raises:
        UnreachableError: No broker answers.
    """
    return await offsets_in(settings, settings.app_id, settings.records_topic)


async def offsets_in(settings: Settings, group: str, topic: str) -> dict[int, int]:
    """Return a group's offset of each partition of a topic that has one.

    Raises:
        UnreachableError: No broker answers.
    """

    async def ask(admin: AIOKafkaAdminClient) -> dict[int, int]:
        found: dict[Any, Any] = await admin.list_consumer_group_offsets(group)
        return {it.partition: at.offset for it, at in found.items() if it.topic == topic}

    return await _asked(settings, group, ask)


async def described_group(settings: Settings, group: str) -> GroupDescription:
    """Return what a group's coordinator says of it.

    Raises:
        NotImplementedError: The coordinator is older than Apache Kafka 2.4.
        UnreachableError: No broker answers, or the coordinator goes on loading.
    """

    async def ask(admin: AIOKafkaAdminClient) -> GroupDescription:
        found = await describe_group(admin, group)
        if found.code:
            raise for_code(found.code)
        return found

    return await _asked(settings, group, ask)


async def committed_offset(settings: Settings, group: str, place: TopicPartition) -> int | None:
    """Return a group's offset of one partition, ``None`` if it has none.

    Raises:
        UnreachableError: No broker answers, or the coordinator goes on loading.
    """

    async def ask(admin: AIOKafkaAdminClient) -> int | None:
        # By name: a coordinator that is still loading then leaves the partition out, and one
        # that has loaded says -1 for "no offset".
        found: dict[Any, Any] = await admin.list_consumer_group_offsets(group, partitions=[place])
        if place not in found:
            raise GroupLoadInProgressError
        offset: int = found[place].offset
        return None if offset == _NO_OFFSET else offset

    return await _asked(settings, group, ask)


async def _asked(
    settings: Settings, group: str, ask: Callable[[AIOKafkaAdminClient], Awaitable[_Answer]]
) -> _Answer:
    give_up_at = asyncio.get_running_loop().time() + _PATIENCE_S
    async with admin_client(settings, "Describe") as admin:
        try:
            while True:
                try:
                    return await ask(admin)
                except _SOON:
                    if asyncio.get_running_loop().time() > give_up_at:
                        raise
                await asyncio.sleep(_PAUSE_S)
        except _SOON as error:
            message = f"group {group}: no coordinator in {_PATIENCE_S:.0f} s ({error!r})"
            raise UnreachableError(message) from error
