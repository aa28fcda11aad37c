"""One partition's side of Apache Kafka: ``PartitionBroker`` over aiokafka."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from processor.core.errors import FencedError, StateError
from processor.kafka.connection import client_settings
from processor.kafka.flow import Flow
from processor.kafka.groups import committed_offset
from processor.kafka.producing import (
    FENCE_TIMEOUT_S,
    Offsets,
    RefusedError,
    Sending,
    TransactionalProducer,
    translated,
)
from processor.kafka.reading import partition_reader, read_to_end, stream_entries, timestamp_of
from processor.kafka.rights import right_errors
from processor.protocol.port import EntryTaker, Message, Survey, TooLargeError, Transaction
from processor.settings import Settings


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
        settings: Connection, and bounds of what is written.
        flow: The topics, by role.
        partition: Its number in the input and the changelog.
        consumer: The group's member; it exists only once the worker runs.
    """

    def __init__(
        self, settings: Settings, flow: Flow, partition: int, consumer: GroupConsumer
    ) -> None:
        self._settings = settings
        self._client = client_settings(settings)
        self._consumer = consumer
        self._flow = flow
        self._input = TopicPartition(flow.input_topic, partition)
        self._changelog = TopicPartition(flow.changelog_topic, partition)
        self._where = f"{flow.input_topic}[{partition}]"
        self._compression = settings.compression
        self._producer: TransactionalProducer | None = None

    async def fence(self) -> None:
        """Start the producer, which fences every older one of this partition."""
        await self.discard()
        producer = TransactionalProducer(
            self._client,
            self._flow.transactional_id(self._input.partition),
            self._where,
            self._compression,
            max_batch_bytes=self._flow.max_batch_bytes,
        )
        self._producer = producer
        with right_errors(self._settings, "Write"):
            await producer.start(FENCE_TIMEOUT_S)

    async def read_changelog(self, taker: EntryTaker) -> None:
        """Read the changelog."""
        with right_errors(self._settings, "Read"):
            await stream_entries(self._client, self._changelog, taker)

    async def survey(self, offsets: Sequence[int]) -> Survey:
        """Look at the log and at the group."""
        records, changelog = self._input, self._changelog
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
            committed is None and self._flow.owns_output and await self._has_output(),
        )

    async def seek(self, offset: int, incarnation: int) -> None:
        """Seek the group's consumer."""
        await self._consumer.seek_stamped(self._input, offset, incarnation)

    async def commit(self, transaction: Transaction) -> None:
        """Write one transaction."""
        if self._producer is None:
            message = f"{self._where}: no producer to commit with"
            raise FencedError(message)
        offsets = Offsets(self._flow.group, {self._input: transaction.next_offset})
        try:
            with right_errors(self._settings, "Write"):
                await self._producer.commit(self._sendings(transaction), offsets)
        except RefusedError as error:
            lone_offset = error.messages[0].lone_offset
            # Only what is too large by itself has a batch of its own.
            if len(error.messages) == 1 and lone_offset is not None:
                raise TooLargeError(lone_offset) from error
            message = (
                f"{error}; was its max.message.bytes lowered? Raise it well above that of "
                f"{self._input.topic} and above PROCESSOR_MAX_CHUNK_BYTES, and start again"
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

    @asynccontextmanager
    async def _reader(self, partition: TopicPartition) -> AsyncIterator[AIOKafkaConsumer]:
        with right_errors(self._settings, "Read"):
            async with partition_reader(self._client, partition) as reader:
                yield reader

    def _sendings(self, transaction: Transaction) -> list[Sending]:
        number = self._input.partition
        entries = [Message(key, value, ()) for key, value in transaction.entries.items()]
        output: dict[int, list[Message]] = {}
        for message in transaction.output:
            partition = number if message.partition is None else message.partition
            output.setdefault(partition, []).append(message)
        return [
            Sending(self._changelog, entries),
            Sending(self._flow.dead_letters_of(number), transaction.dead_letters),
            # The output last: others are under way while its batches wait for each other.
            *(Sending(TopicPartition(self._flow.output_topic, it), output[it]) for it in output),
        ]

    async def _has_output(self) -> bool:
        """Tell whether output was committed; offsets alone count what was aborted too."""
        output = TopicPartition(self._flow.output_topic, self._input.partition)
        async with self._reader(output) as reader:
            async for _ in read_to_end(reader, output):
                return True
        return False

    async def _committed(self) -> int | None:
        try:
            return await committed_offset(self._settings, self._flow.group, self._input)
        except KafkaError as error:
            raise translated(error, self._where) from error
