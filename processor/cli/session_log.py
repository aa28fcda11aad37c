"""One session's chunks and records, picked out of a partition; nothing else of it is kept."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiokafka import TopicPartition

from processor.core.errors import ConfigError, StateError
from processor.kafka.connection import client_settings
from processor.kafka.partitioner import partitioner
from processor.kafka.reading import partition_reader, read_to_end
from processor.kafka.topics import describe_topic
from processor.proof.message import Message
from processor.proof.rules import Logged
from processor.proof.seen import Seen
from processor.protocol.record_ids import RecordIds
from processor.settings import Settings


class SessionLog:
    """A session's part of one partition of both topics.

    Args:
        settings: How to connect, and the topics' names.
        session: The session.
        number: The partition.

    Attributes:
        session: The session.
        number: The partition.
        records_topic: Name of the log.
        chunks_topic: Name of the topic of chunks.
    """

    def __init__(self, settings: Settings, session: str, number: int) -> None:
        self._client = client_settings(settings)
        self._key = session.encode()
        self.session = session
        self.number = number
        self.records_topic = settings.records_topic
        self.chunks_topic = settings.chunks_topic

    async def chunks(self) -> AsyncIterator[Seen]:
        """Yield the session's chunks, up to the end as of now.

        Raises:
            StateError: A message with its key is no chunk.
        """
        async with self._batches(self.chunks_topic) as batches:
            async for messages in batches:
                for message in messages:
                    if message.key == self._key:
                        yield seen_at(message, self.chunks_topic, self.number)

    async def messages_from(self, offset: int, window: int) -> AsyncGenerator[Logged]:
        """Yield the session's records and ends from an offset on, up to the end as of now.

        Args:
            offset: First offset.
            window: Offsets in which a record that repeats another by its id is left out.
        """
        ids = RecordIds(window)
        log_time_ms = 0
        async with self._batches(self.records_topic, max(0, offset - window)) as batches:
            async for messages in batches:
                for it in messages:
                    log_time_ms = max(log_time_ms, it.timestamp)
                    if it.key != self._key or ids.is_repeated(it) or it.offset < offset:
                        continue
                    at = (it.offset, it.timestamp, log_time_ms)
                    yield Logged(*at, it.value, it.headers)

    @asynccontextmanager
    async def _batches(
        self, topic: str, offset: int = 0
    ) -> AsyncIterator[AsyncIterator[Sequence[Message]]]:
        place = TopicPartition(topic, self.number)
        async with partition_reader(self._client, place) as reader:
            starts = await reader.beginning_offsets([place])
            reader.seek(place, max(offset, starts[place]))
            yield read_to_end(reader, place)


def seen_at(message: Message, topic: str, partition: int) -> Seen:
    """Return the chunk in a message.

    Raises:
        StateError: It is no chunk.
    """
    try:
        return Seen(message)
    except StateError as error:
        msg = f"{topic}[{partition}]@{message.offset}: {error}; run processor verify"
        raise StateError(msg) from error


async def session_logs(settings: Settings, session: str) -> dict[int, SessionLog]:
    """Return a session's part of every partition; the one where its key belongs comes first.

    Raises:
        ConfigError: A topic is not there, or the two differ in their partitions.
    """
    topics = (settings.chunks_topic, settings.records_topic)
    count, other = [(await describe_topic(settings, it)).partition_count for it in topics]
    if count != other:
        msg = f"{topics[0]} has {count} partitions, {topics[1]} {other}: run processor topics check"
        raise ConfigError(msg)
    home = partitioner(count)(session.encode())
    numbers = [home, *(it for it in range(count) if it != home)]
    return {it: SessionLog(settings, session, it) for it in numbers}
