"""One partition's side of Apache Kafka: ``PartitionBroker`` over aiokafka."""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from processor.core.errors import FencedError, StateError
from processor.kafka.connection import client_settings
from processor.kafka.groups import committed_offset
from processor.kafka.producing import (
    Offsets,
    RefusedError,
    Sending,
    TransactionalProducer,
    translated,
)
from processor.kafka.reading import latest_entries, partition_reader, read_to_end, timestamp_of
from processor.protocol.port import Message, Survey, TooLargeError, Transaction
from processor.settings import Settings

_FENCE_TIMEOUT_S: Final = 40.0


class GroupConsumer(Protocol):
    """The two things asked of the consumer that is a member of the group."""

    async def seek_stamped(self, partition: TopicPartition, offset: int, incarnation: int) -> None:
        """Fetch from ``offset`` on; stamp what is taken from then on with ``incarnation``."""
        ...

    async def is_member(self) -> bool:
        """Ask the coordinator whether we are in the present generation."""
        ...


class KafkaPartitionBroker:
    """``PartitionBroker`` of one partition; see ``protocol/port.py`` for what each call does.

    Args:
        settings: Topics, group and connection.
        partition: Its number, the same in all four topics.
        consumer: The group's member; it exists only once the worker runs.
    """

    def __init__(self, settings: Settings, partition: int, consumer: GroupConsumer) -> None:
        self._settings = settings
        self._client = client_settings(settings)
        self._consumer = consumer
        self._records = TopicPartition(settings.records_topic, partition)
        self._chunks = TopicPartition(settings.chunks_topic, partition)
        self._changelog = TopicPartition(settings.changelog_topic, partition)
        self._dead_letters = TopicPartition(settings.dead_letter_topic, partition)
        # Always the same for this partition: it is the lock.
        self._transactional_id = f"{settings.app_id}-{settings.records_topic}-{partition}"
        self._where = f"{settings.records_topic}[{partition}]"
        # A start check holds it below the topics' limits.
        self._max_chunk_bytes = settings.max_chunk_bytes
        self._compression = settings.compression
        self._producer: TransactionalProducer | None = None

    async def fence(self) -> None:
        """Start the producer, which fences every older one of this partition."""
        await self.discard()
        producer = TransactionalProducer(
            self._client,
            self._transactional_id,
            self._where,
            self._compression,
            max_batch_bytes=self._max_chunk_bytes,
        )
        self._producer = producer
        await producer.start(_FENCE_TIMEOUT_S)

    async def read_changelog(self) -> Mapping[bytes, bytes]:
        """Return the latest entry of each key."""
        return await latest_entries(self._client, self._changelog)

    async def survey(self, offsets: Sequence[int]) -> Survey:
        """Look at the log and at the group."""
        records, changelog = self._records, self._changelog
        async with partition_reader(self._client, records) as reader:
            starts = await reader.beginning_offsets([records, changelog])
            ends = await reader.end_offsets([records])
            partitions = reader.partitions_for_topic(records.topic)
            found = {
                it: await timestamp_of(reader, records, it)
                for it in offsets
                if starts[records] <= it < ends[records]
            }
        committed = await self._committed()
        return Survey(
            len(partitions or ()),
            starts[records],
            ends[records],
            committed,
            found,
            starts[changelog],
            committed is None and await self._has_chunks(),
        )

    async def seek(self, offset: int, incarnation: int) -> None:
        """Seek the group's consumer."""
        await self._consumer.seek_stamped(self._records, offset, incarnation)

    async def commit(self, transaction: Transaction) -> None:
        """Write one transaction."""
        if self._producer is None:
            message = f"{self._where}: no producer to commit with"
            raise FencedError(message)
        entries = [Message(key, value, ()) for key, value in transaction.entries.items()]
        sendings = [
            Sending(self._changelog, entries),
            Sending(self._dead_letters, transaction.dead_letters),
            # The chunks last: others are under way while their batches wait for each other.
            Sending(self._chunks, transaction.chunks),
        ]
        offsets = Offsets(self._settings.app_id, {self._records: transaction.next_offset})
        try:
            await self._producer.commit(sendings, offsets)
        except RefusedError as error:
            lone_offset = error.messages[0].lone_offset
            # Only what is too large by itself has a batch of its own.
            if len(error.messages) == 1 and lone_offset is not None:
                raise TooLargeError(lone_offset) from error
            message = (
                f"{error}; was its max.message.bytes lowered? Raise it well above that of the "
                "records topic and above PROCESSOR_MAX_CHUNK_BYTES, and start again"
            )
            raise StateError(message) from error

    async def owns(self) -> bool:
        """Ask the group's coordinator."""
        return await self._consumer.is_member()

    async def discard(self) -> None:
        """Cut the producer off."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.discard()

    async def _has_chunks(self) -> bool:
        """Tell whether a chunk was committed; offsets alone count what was aborted too."""
        chunks = self._chunks
        async with partition_reader(self._client, chunks) as reader:
            async for _ in read_to_end(reader, chunks):
                return True
        return False

    async def _committed(self) -> int | None:
        try:
            return await committed_offset(self._settings, self._records.partition)
        except KafkaError as error:
            raise translated(error, self._where) from error
