"""One transactional producer, and one whole transaction of it, whatever it is made of.

aiokafka retries a commit request (EndTxn) by itself, with the same epoch, when its answer is
late: a late copy would then commit the *next* transaction, half-written. The requests are
counted, and after a second one the producer must not be used again. Its ``stop()`` can hang for
ever on a frozen broker, so it is never stopped: it is cut off, and the next owner's fence is
the safety.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import (
    IllegalOperation,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerFenced,
)
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import OffsetAndMetadata

from processor.core.errors import (
    ConfigError,
    FencedError,
    ProcessorError,
    UnreachableError,
)
from processor.kafka.connection import NO_ANSWER
from processor.kafka.rights import FORBIDDEN
from processor.protocol.port import Message, ResentCommitError

#: Above the partition's own bound of a commit, see ``protocol/partition.py``.
TRANSACTION_TIMEOUT_MS: Final = 30_000
#: Above that: an older owner's open transaction is resolved by then.
FENCE_TIMEOUT_S: Final = 40.0
#: Below it: a commit that is given up here the broker gives up too. A partition waits less long.
LONGEST_COMMIT_S: Final = 25.0
#: Bytes of messages that share a batch.
_MAX_BATCH_BYTES: Final = 1 << 20
_DISCARD_TIMEOUT_S: Final = 2.0
_FENCED: Final = (
    ProducerFenced,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    # No transaction any more: a batch that was under way was fenced while the next one was made.
    IllegalOperation,
)


def translated(error: Exception, where: str) -> ProcessorError:
    """Return the error of our tree that a Kafka error stands for."""
    if isinstance(error, _FENCED):
        return FencedError(f"{where}: a newer owner has fenced this one ({error!r})")
    if isinstance(error, FORBIDDEN):
        return ConfigError(f"{where}: not allowed ({error!r}); grant the right and start again")
    return UnreachableError(f"{where}: {error!r}")


class Sending(NamedTuple):
    """Messages of one transaction for one partition, in order."""

    target: TopicPartition
    messages: Sequence[Message]


class Offsets(NamedTuple):
    """What a consumer group has read, to be committed with a transaction."""

    group: str
    next_offsets: Mapping[TopicPartition, int]


class RefusedError(ProcessorError):
    """A topic takes no batch of this size; nothing of the transaction is written.

    Attributes:
        topic: Its name.
        messages: The batch; what is too large by itself has one of its own.
    """

    def __init__(self, where: str, topic: str, messages: Sequence[Message]) -> None:
        count = len(messages)
        what = "a message" if count == 1 else f"{count} messages that share a batch"
        super().__init__(f"{where}: topic {topic} refuses {what} as too large")
        self.topic = topic
        self.messages = messages


class _Sent(NamedTuple):
    """A batch that the client has, and what it resolves once the broker has answered."""

    batch: Sending
    done: Awaitable[object]


class TransactionalProducer:
    """A started producer: every older one of the same transactional id is fenced.

    Args:
        client: Arguments that every client takes to connect.
        transactional_id: The lock that this producer is.
        where: Topic and partition, for messages.
        compression: Name of a codec, or ``none``.
        max_batch_bytes: Messages share a batch only up to this, which every topic must take: a
            topic judges whole batches, and only what is too large by itself may be refused.
    """

    def __init__(
        self,
        client: dict[str, Any],
        transactional_id: str,
        where: str,
        compression: str,
        *,
        max_batch_bytes: int,
    ) -> None:
        self._where = where
        self._producer = AIOKafkaProducer(
            **client,
            transactional_id=transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            compression_type=None if compression == "none" else compression,
            max_batch_size=min(_MAX_BATCH_BYTES, max_batch_bytes),
            # Topics bound the size of a message; the client's own bound must not come first.
            max_request_size=(1 << 31) - 1,
        )
        self._commit_requests = 0

    async def start(self, timeout_s: float) -> None:
        """Fence older owners and wait until their last transaction is resolved.

        Raises:
            UnreachableError: No answer within ``timeout_s``.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._producer.start()
        except TimeoutError as error:
            message = f"{self._where}: the broker did not let us take over in {timeout_s:.0f} s"
            raise UnreachableError(message) from error
        except (*NO_ANSWER, KafkaError) as error:
            raise translated(error, self._where) from error
        self._count_commit_requests()

    async def commit(self, sendings: Sequence[Sending], offsets: Offsets | None = None) -> None:
        """Write all of it in one transaction; returns once it is durable.

        Raises:
            RefusedError: A topic takes no message of this size; nothing is written.
            FencedError: A newer producer exists; nothing is written.
            ResentCommitError: It may be written; this producer must not go on.
            UnreachableError: No answer; it may be written.
        """
        producer = self._producer
        self._commit_requests = 0
        try:
            await producer.begin_transaction()
            sent = [it for sending in sendings for it in await self._send(sending)]
            # A refused batch fails only its own future: the commit would succeed without it.
            results = await asyncio.gather(*(it.done for it in sent), return_exceptions=True)
            for (batch, _), result in zip(sent, results, strict=True):
                if isinstance(result, MessageSizeTooLargeError):
                    raise RefusedError(self._where, batch.target.topic, batch.messages) from result
                if isinstance(result, BaseException):
                    raise result
            if offsets is not None:
                stands = {at: OffsetAndMetadata(it, "") for at, it in offsets.next_offsets.items()}
                await producer.send_offsets_to_transaction(stands, offsets.group)
            await producer.commit_transaction()
        except (KafkaError, IllegalOperation) as error:
            raise translated(error, self._where) from error
        if self._commit_requests > 1:
            message = f"{self._where}: the commit was asked for {self._commit_requests} times"
            raise ResentCommitError(message)

    async def discard(self) -> None:
        """Cut the producer off, whatever it is doing."""
        producer = self._producer
        # Marked closed, so that nothing warns or flushes; its own stop() would wait for a flush.
        producer._closed = True  # noqa: SLF001
        sender = producer._sender.sender_task  # noqa: SLF001
        if sender is not None:
            sender.cancel()
        # What is still on its way fails for nobody.
        accumulator = producer._message_accumulator  # noqa: SLF001
        queued = chain.from_iterable(accumulator._batches.values())  # noqa: SLF001
        for batch in (*accumulator._pending_batches, *queued):  # noqa: SLF001
            batch.future.add_done_callback(_hear)
            batch._drain_waiter.add_done_callback(_hear)  # noqa: SLF001
        ending = producer._txn_manager._transaction_waiter  # noqa: SLF001
        if ending is not None:
            ending.add_done_callback(_hear)
        closing = asyncio.ensure_future(producer.client.close())
        await asyncio.wait([closing], timeout=_DISCARD_TIMEOUT_S)

    async def _send(self, sending: Sending) -> list[_Sent]:
        """Hand messages to the client in whole batches: one by one costs it 30 µs for each."""
        (topic, partition), messages = sending
        sent: list[_Sent] = []
        begun = 0
        while begun < len(messages):
            builder = self._producer.create_batch()
            end = _fill(builder, messages, begun)
            done = await self._producer.send_batch(builder, topic, partition=partition)
            done.add_done_callback(_hear)
            sent.append(_Sent(Sending(sending.target, messages[begun:end]), done))
            begun = end
        return sent

    def _count_commit_requests(self) -> None:
        sender = self._producer._sender  # noqa: SLF001
        ask: Callable[[Any], Awaitable[None]] = sender._do_txn_commit  # noqa: SLF001

        async def counted(result: Any) -> None:  # noqa: ANN401 - aiokafka's own value
            self._commit_requests += 1
            await ask(result)

        sender._do_txn_commit = counted  # noqa: SLF001


def _fill(builder: BatchBuilder, messages: Sequence[Message], begin: int) -> int:
    """Add messages until the batch is full, one at least; return the index of the next."""
    for index in range(begin, len(messages)):
        key, value, headers, timestamp_ms, *_ = messages[index]
        added = builder.append(timestamp=timestamp_ms, key=key, value=value, headers=list(headers))
        if added is None:
            return index
    return len(messages)


def _hear(done: asyncio.Future[Any]) -> None:
    """Take the outcome of a batch, which a commit that fails before it asks for no more.

    asyncio logs an exception that nobody took: many lines, long after what they are about.
    """
    if not done.cancelled():
        done.exception()
