"""How messages come from the broker: to their ends, or on and on, or a group's share of them."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)

from processor.client.chunk import Delivered
from processor.core.errors import StateError
from processor.kafka.connection import broker_errors, client_settings
from processor.kafka.consumer_settings import consumer_settings
from processor.kafka.reading import partition_reader, read_to_end
from processor.kafka.topics import describe_topic
from processor.settings import Settings

#: What is done with a chunk may be a call of a model: so long, until the group takes us for stuck.
_LONGEST_BODY_MS: Final = 3_600_000
#: As aiokafka's own ``seek_to_beginning`` and ``seek_to_end``.
Stand = Callable[[AIOKafkaConsumer], Awaitable[object]]
_log: Final = logging.getLogger(__name__)


class Delivery(NamedTuple):
    """Messages as they come, and what to call when all that came is done."""

    messages: AsyncGenerator[Delivered]
    done: Callable[[], Awaitable[None]]


class _Message(NamedTuple):
    """A record of a batch, which does not know where it stands."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


@asynccontextmanager
async def ending(settings: Settings) -> AsyncIterator[Delivery]:
    """Read each partition to its end, one after the other.

    Raises:
        ConfigError: There is no such topic, or we may not read it.
        UnreachableError: No broker answers.
    """
    yield Delivery(_to_ends(settings, await _partitions(settings)), _nothing)


async def _to_ends(
    settings: Settings, places: Iterable[TopicPartition]
) -> AsyncGenerator[Delivered]:
    for place in places:
        async with partition_reader(client_settings(settings), place) as reader:
            async for batch in read_to_end(reader, place):
                for it in batch:
                    yield _Message(place.topic, place.partition, it.offset, it.key, it.value)


@asynccontextmanager
async def following(
    settings: Settings, stand: Stand = AIOKafkaConsumer.seek_to_beginning
) -> AsyncIterator[Delivery]:
    """Read all partitions, and on; errors are those of ``ending``.

    Args:
        settings: How to connect.
        stand: Has the consumer stand where the first message is to come from.
    """
    places = await _partitions(settings)
    consumer = AIOKafkaConsumer(
        **client_settings(settings),
        group_id=None,
        isolation_level="read_committed",
        auto_offset_reset="none",
    )
    try:
        with broker_errors(settings):
            await consumer.start()
            consumer.assign(places)
            await stand(consumer)
        yield Delivery(each(consumer, settings), _nothing)
    finally:
        await consumer.stop()


@asynccontextmanager
async def shared(
    settings: Settings, group: str, forget: Callable[[Iterable[int]], None]
) -> AsyncIterator[Delivery]:
    """Read the partitions that a group gives us, from where it stands.

    Args:
        settings: How to connect.
        group: Its name.
        forget: Called with the numbers of partitions that are taken from us.

    Raises:
        ConfigError: There is no such topic, or we may not read it as that group.
        UnreachableError: No broker answers.
    """
    await _partitions(settings)  # to subscribe to a topic may create it
    arguments = consumer_settings(settings, group) | {"max_poll_interval_ms": _LONGEST_BODY_MS}
    consumer = AIOKafkaConsumer(**arguments)
    try:
        with broker_errors(settings):
            await consumer.start()
        consumer.subscribe([settings.chunks_topic], listener=_Forgetting(forget))
        yield Delivery(each(consumer, settings), partial(commit, consumer, settings))
    finally:
        await consumer.stop()


class _Forgetting(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka is untyped
    """Others may read what is taken from us: what we knew of it no longer holds."""

    def __init__(self, forget: Callable[[Iterable[int]], None]) -> None:
        self._forget = forget

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._forget(it.partition for it in revoked)

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        pass


async def each(consumer: AIOKafkaConsumer, settings: Settings) -> AsyncGenerator[Delivered]:
    """Yield each message, a new group's from the oldest on.

    Raises:
        StateError: Messages were deleted before they were read.
    """
    while True:
        try:
            # One at a time: what is fetched ahead would be committed as if it were done. And not
            # around the yield, which may go on in another task, of another context.
            with broker_errors(settings):
                message: Delivered = await consumer.getone()
        except NoOffsetForPartitionError as error:
            (new,) = error.args
            if new in consumer.assignment():
                await consumer.seek_to_beginning(new)
        except OffsetOutOfRangeError as error:
            text = (
                f"chunks were deleted before they were read ({error}); keep them for longer "
                "(retention.ms), and begin anew with what is left, a group under another name"
            )
            raise StateError(text) from error
        else:
            yield message


async def commit(consumer: AIOKafkaConsumer, settings: Settings) -> None:
    """Move the group's position behind all messages that came; unless it gave them to another."""
    try:
        with broker_errors(settings):
            await consumer.commit()
    except (CommitFailedError, IllegalStateError) as error:
        # The partition is another's: it comes to that one from the position before.
        _log.warning("the group moved on meanwhile; a chunk comes again: %s", error)


async def _nothing() -> None:
    pass


async def _partitions(settings: Settings) -> list[TopicPartition]:
    # Not asked of the consumer: its own question would make the broker create the topic.
    facts = await describe_topic(settings, settings.chunks_topic)
    return [TopicPartition(settings.chunks_topic, it) for it in range(facts.partition_count)]
