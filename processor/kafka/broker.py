"""One partition's side of Apache Kafka: ``PartitionBroker`` over aiokafka."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from processor.core.errors import FencedError
from processor.kafka.connection import client_settings
from processor.kafka.groups import committed_offset
from processor.kafka.producing import Targets, TransactionalProducer, translated
from processor.kafka.reading import partition_reader, read_to_end, timestamp_of
from processor.kafka.rights import right_errors
from processor.protocol.port import Survey, Transaction
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
        self._targets = Targets(
            TopicPartition(settings.records_topic, partition),
            TopicPartition(settings.chunks_topic, partition),
            TopicPartition(settings.changelog_topic, partition),
            TopicPartition(settings.dead_letter_topic, partition),
            settings.app_id,
        )
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
        with right_errors(self._settings, "Write"):
            await producer.start(_FENCE_TIMEOUT_S)

    async def read_changelog(self) -> Mapping[bytes, bytes]:
        """Return the latest entry of each key."""
        entries: dict[bytes, bytes] = {}
        changelog = self._targets.changelog
        async with self._reader(changelog) as reader:
            async for records in read_to_end(reader, changelog):
                for record in records:
                    key = record.key or b""
                    if record.value is None:
                        entries.pop(key, None)
                    else:
                        entries[key] = record.value
        return entries

    async def survey(self, offsets: Sequence[int]) -> Survey:
        """Look at the log and at the group."""
        records, changelog = self._targets.records, self._targets.changelog
        async with self._reader(records) as reader:
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
        await self._consumer.seek_stamped(self._targets.records, offset, incarnation)

    async def commit(self, transaction: Transaction) -> None:
        """Write one transaction."""
        if self._producer is None:
            message = f"{self._where}: no producer to commit with"
            raise FencedError(message)
        with right_errors(self._settings, "Write"):
            await self._producer.commit(transaction, self._targets)

    async def owns(self) -> bool:
        """Ask the group's coordinator."""
        return await self._consumer.is_member()

    async def discard(self) -> None:
        """Cut the producer off."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.discard()

    @asynccontextmanager
    async def _reader(self, partition: TopicPartition) -> AsyncIterator[AIOKafkaConsumer]:
        with right_errors(self._settings, "Read"):
            async with partition_reader(self._client, partition) as reader:
                yield reader

    async def _has_chunks(self) -> bool:
        """Tell whether a chunk was committed; offsets alone count what was aborted too."""
        chunks = self._targets.chunks
        async with self._reader(chunks) as reader:
            async for _ in read_to_end(reader, chunks):
                return True
        return False

    async def _committed(self) -> int | None:
        try:
            return await committed_offset(self._settings, self._targets.records.partition)
        except KafkaError as error:
            raise translated(error, self._where) from error
