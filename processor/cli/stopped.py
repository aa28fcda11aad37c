"""What verbs share that change the state of an app which does not run."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

import click
from aiokafka import TopicPartition

from processor.core.errors import ConfigError, UnreachableError
from processor.kafka.broker import KafkaPartitionBroker
from processor.kafka.groups import described_group
from processor.kafka.producing import LONGEST_COMMIT_S
from processor.kafka.topics import describe_topic
from processor.protocol.port import Transaction
from processor.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")


class NoMember:
    """Stands where a worker has the group's consumer; nothing here reads as a member."""

    async def seek_stamped(self, partition: TopicPartition, offset: int, incarnation: int) -> None:
        """Refuse."""
        raise NotImplementedError

    async def is_member(self) -> bool:
        """Say no."""
        return False


def partition_options(verb: Callable[P, R]) -> Callable[P, R]:
    """Give a verb ``--partition N`` and ``--all``, passed as ``partitions`` and ``is_all``."""
    named = click.option(
        "--partition", "partitions", type=click.IntRange(min=0), multiple=True, metavar="N"
    )
    return named(click.option("--all", "is_all", is_flag=True, help="All partitions.")(verb))


def chosen_partitions(
    settings: Settings, partitions: tuple[int, ...], *, is_all: bool
) -> Sequence[int]:
    """Return the partitions that ``partition_options`` name, in order.

    Raises:
        UsageError: None are named, or some and all, or one that is not there.
        ConfigError: There is no records topic, or no changelog.
        UnreachableError: No broker answers.
    """
    if bool(partitions) == is_all:
        msg = "name partitions with --partition N, or all of them with --all"
        raise click.UsageError(msg)
    count = asyncio.run(partition_count(settings))
    if wrong := [number for number in partitions if number >= count]:
        msg = f"{settings.records_topic} has {count} partitions, from 0; there is no {wrong[0]}"
        raise click.UsageError(msg)
    return range(count) if is_all else sorted(set(partitions))


async def partition_count(settings: Settings) -> int:
    """Return how many partitions the records topic has, once the changelog is there too.

    Raises:
        ConfigError: One of them is missing.
        UnreachableError: No broker answers.
    """
    # The changelog is asked for too: a reader's own question would make the broker create it.
    await describe_topic(settings, settings.changelog_topic)
    return (await describe_topic(settings, settings.records_topic)).partition_count


async def refuse_members(settings: Settings, action: str) -> None:
    """Return if no worker of the app is in its group.

    Args:
        settings: Name the app.
        action: What to do again once they are stopped.

    Raises:
        ClickException: There are members; the message names them.
        ConfigError: The brokers don't tell.
        UnreachableError: No broker answers.
    """
    group = settings.app_id
    try:
        members = (await described_group(settings, group)).members
    except NotImplementedError as error:
        msg = f"group {group}: brokers older than Apache Kafka 2.4 don't tell its members as asked"
        raise ConfigError(msg) from error
    if members:
        msg = (
            f"group {group} has {len(members)} members ({', '.join(map(str, members))}): stop all "
            f"workers, wait until the group has noticed, and {action} again"
        )
        raise click.ClickException(msg)


async def commit_state(
    broker: KafkaPartitionBroker, entries: Mapping[bytes, bytes | None], seen: int, where: str
) -> None:
    """Write a partition's entries and its group's offset, all in one transaction.

    Args:
        broker: Fenced: a worker that has started meanwhile fences us, or is fenced; either finds
            all of the old state or all of the new.
        entries: By key; ``None`` removes one.
        seen: The offset.
        where: Topic and partition, for the error.

    Raises:
        UnreachableError: No answer; it may be written.
    """
    try:
        async with asyncio.timeout(LONGEST_COMMIT_S):
            await broker.commit(Transaction([], entries, [], seen))
    except TimeoutError as error:
        msg = f"{where}: no answer to a commit; look at it with `processor state show`"
        raise UnreachableError(msg) from error
