"""Messages, and a durable memory of what was sent: both in one transaction.

Theory of operation. A ledger has a name, and entries by key under that name, in a compacted topic.
Whoever feeds a topic from somewhere else (files, telemetry, dead letters) writes in one
transaction the messages and the entries that say how far it has come: whoever starts again under
that name reads the entries and knows exactly what was sent, whatever crashed.

*open*: start the producer, whose transactional id is the name's, always the same: that fences every
older one and resolves its last transaction. Only then read the entries, read_committed, to the
high watermark. Then write who the owner is. All names share partition 0, however many the topic
has: an entry that moved when partitions are added would be forgotten, and its messages sent again.

*commit*: any failure means that the outcome may be unknown. The producer is cut off, never aborted
and gone on with, and the ledger must be opened again; its entries tell whether the commit landed.

*fenced*: does not mean another owner, since a transaction that timed out, or an id unused for a
week, fences too. So a ledger that is opened a second time looks who the owner is. Is it another, it
has to stop; that it has fenced that one by looking makes the other open again, find itself the
owner, and go on.
"""

import asyncio
import os
import socket
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from aiokafka import TopicPartition

from processor.core.errors import ConfigError, FencedError, ProcessorError, UnreachableError
from processor.kafka.connection import client_settings
from processor.kafka.partitioner import partitioner
from processor.kafka.producing import (
    FENCE_TIMEOUT_S,
    LONGEST_COMMIT_S,
    Offsets,
    RefusedError,
    Sending,
    TransactionalProducer,
)
from processor.kafka.reading import latest_entries
from processor.kafka.rights import right_errors
from processor.kafka.topics import describe_topic, ensure_compacted_topic, has_topic
from processor.protocol.port import Message
from processor.settings import Settings

#: Above what a batch adds to its messages.
_BATCH_OVERHEAD_BYTES: Final = 1024
#: Parts a name from a key; no name holds it.
_SEPARATOR: Final = b"/"
#: Key of the entry that says who owns the name.
_OWNER: Final = b""


class Outgoing(NamedTuple):
    """A message for any topic of a ledger.

    Attributes:
        partition: Its number; by murmur2 of the key, as Java's clients choose, when not given.
    """

    topic: str
    key: bytes
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class OutgoingTooLargeError(ProcessorError):
    """A topic takes no message of this size; nothing of the transaction is written.

    Attributes:
        message: The message.
    """

    def __init__(self, message: Outgoing) -> None:
        size = len(message.key) + len(message.value or b"")
        super().__init__(
            f"a message of {size:,} bytes is larger than topic {message.topic} takes; raise the "
            "topic's max.message.bytes"
        )
        self.message = message


class Ledger:
    """Sends messages together with entries that say how far the sender has come.

    Args:
        settings: Connection, compression, the topic of the entries.
        name: Of the sender, the same after a restart; two of one name at once fence each other.
        topics: All that is sent to. None is ever created.
    """

    def __init__(self, settings: Settings, name: str, *topics: str) -> None:
        self._settings = settings
        self._client = client_settings(settings)
        self._topics = topics
        self._name = name
        self._prefix = _prefix(name)
        self._entries_at = _place(settings)
        self._owner = f"process {os.getpid()} on {socket.gethostname()}, {uuid.uuid4().hex}"
        self._has_owned = False
        self._partition_of: dict[str, Callable[[bytes], int]] = {}
        self._producer: TransactionalProducer | None = None

    async def open(self) -> dict[bytes, bytes]:
        """Become the only sender of this name and return its entries, as of now.

        Every older one is refused from now on, and its open transaction is resolved. To be called
        again after any failed commit.

        Raises:
            ConfigError: A topic is missing or is not as it must be.
            FencedError: Another one has been opened under this name meanwhile.
            StateError: A foreign transaction hangs in the topic of the entries.
            UnreachableError: The broker does not answer.
        """
        await self.close()
        own_facts = await ensure_compacted_topic(self._settings, self._entries_at.topic)
        facts = {it: await describe_topic(self._settings, it, "Write") for it in self._topics}
        self._partition_of = {at: partitioner(it.partition_count) for at, it in facts.items()}
        limit = min(it.max_message_bytes for it in (own_facts, *facts.values()))
        try:
            self._producer = TransactionalProducer(
                self._client,
                f"{self._entries_at.topic}-{self._name}",
                f"ledger {self._name}",
                self._settings.compression,
                max_batch_bytes=max(1, limit - _BATCH_OVERHEAD_BYTES),
            )
            with right_errors(self._settings, "Write"):
                await self._producer.start(FENCE_TIMEOUT_S)
            entries = await _entries(self._client, self._entries_at, self._prefix)
            self._refuse_other(entries.pop(_OWNER, b"").decode())
            await self._write((), {_OWNER: self._owner.encode()})
        except BaseException:
            await self.close()
            raise
        self._has_owned = True
        return entries

    async def commit(
        self,
        messages: Sequence[Outgoing],
        entries: Mapping[bytes, bytes | None],
        offsets: Offsets | None = None,
    ) -> None:
        """Write messages, entries and a group's offsets in one transaction; returns once durable.

        After any error the ledger is closed.

        Args:
            messages: In order; those of one partition keep it.
            entries: By non-empty key; ``None`` removes one.
            offsets: What a consumer group has read.

        Raises:
            OutgoingTooLargeError: A topic refuses a message; nothing is written.
            FencedError: Fenced, perhaps by another one of this name; nothing is written.
            OwnershipError: The client asked for the commit more than once; it may be written.
            UnreachableError: No answer; it may be written.
        """
        try:
            await self._write(messages, entries, offsets)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Let go of the producer, in bounded time, whatever it is doing."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.discard()

    def _refuse_other(self, owner: str) -> None:
        if self._has_owned and owner != self._owner:
            message = (
                f"another one runs under the name {self._name!r} since ({owner}); stop one of "
                "them, or give each a name of its own"
            )
            raise FencedError(message)

    async def _write(
        self,
        messages: Sequence[Outgoing],
        entries: Mapping[bytes, bytes | None],
        offsets: Offsets | None = None,
    ) -> None:
        if self._producer is None:
            message = f"ledger {self._name} is not open"
            raise FencedError(message)
        sendings = self._sendings(messages)
        own = [Message(self._prefix + key, value, ()) for key, value in entries.items()]
        sendings.append(Sending(self._entries_at, own))
        try:
            with right_errors(self._settings, "Write"):
                async with asyncio.timeout(LONGEST_COMMIT_S):
                    await self._producer.commit(sendings, offsets)
        except TimeoutError as error:
            message = f"ledger {self._name}: no answer to a commit within {LONGEST_COMMIT_S:g} s"
            raise UnreachableError(message) from error
        except RefusedError as error:
            raise _refusal(error, messages) from error

    def _sendings(self, messages: Sequence[Outgoing]) -> list[Sending]:
        """Part messages by topic and partition, in order."""
        parts: dict[TopicPartition, list[Message]] = defaultdict(list)
        for topic, key, value, headers, partition, timestamp_ms in messages:
            at = self._partition_of[topic](key) if partition is None else partition
            message = Message(key, value, headers, timestamp_ms)
            parts[TopicPartition(topic, at)].append(message)
        return [Sending(target, part) for target, part in parts.items()]


async def ledger_entries(settings: Settings, name: str) -> dict[bytes, bytes]:
    """Return the entries of a ledger as of now, without becoming its sender.

    Raises:
        StateError: A foreign transaction hangs in the topic of the entries.
        UnreachableError: The broker does not answer.
    """
    if not await has_topic(settings, settings.positions_topic):
        return {}
    entries = await _entries(client_settings(settings), _place(settings), _prefix(name))
    entries.pop(_OWNER, None)
    return entries


def _prefix(name: str) -> bytes:
    return name.encode() + _SEPARATOR


def _place(settings: Settings) -> TopicPartition:
    return TopicPartition(settings.positions_topic, 0)


async def _entries(client: dict[str, Any], at: TopicPartition, prefix: bytes) -> dict[bytes, bytes]:
    latest = await latest_entries(client, at)
    return {
        key.removeprefix(prefix): value for key, value in latest.items() if key.startswith(prefix)
    }


def _refusal(error: RefusedError, messages: Sequence[Outgoing]) -> ProcessorError:
    """Name the message that is too large, or, where that can't be told, the topic."""
    refused = [(error.topic, it.key, it.value) for it in error.messages]
    for it in messages:
        # What is too large by itself has a batch of its own.
        if refused == [(it.topic, it.key, it.value)]:
            return OutgoingTooLargeError(it)
    return ConfigError(f"{error}; raise its max.message.bytes and start again")
