"""Lines of files into a topic, in order, each delivery awaited."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from processor.core.errors import ProcessorError, RecordError, UnreachableError
from processor.feeding.choice import STDIN, Choice, split_first
from processor.kafka.connection import NO_ANSWER, broker_errors, client_settings
from processor.kafka.topics import describe_topic
from processor.settings import Settings
from processor.sources.jsonl import read_lines, read_lines_aside

_BEFORE_AND_AFTER: Final = "all before it was sent, nothing after it"
_IN_FLIGHT: Final = 1_000
_BATCH_BYTES: Final = 64 * 1024
_STOP_WITHIN_S: Final = 10.0


class NotSentError(ProcessorError):
    """A line can't be sent; the message names it, and says which others were."""


class Producer(Protocol):
    """The one thing asked of a Kafka producer."""

    async def send(
        self,
        topic: str,
        *,
        value: bytes | None,
        key: bytes,
        headers: list[tuple[str, bytes]],
    ) -> Awaitable[object]:
        """Hand a message over; the result can be awaited for its delivery."""
        ...


@dataclass(slots=True)
class Summary:
    """What was delivered so far."""

    record_count: int = 0
    end_count: int = 0
    sessions: set[str] = field(default_factory=set)


class Sender:
    """Sends in order, and awaits every delivery with a bounded number of them pending."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self._pending: deque[tuple[str, Awaitable[object]]] = deque()

    async def send(
        self,
        where: str,
        session: str,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """Send one message; ``where`` names its line in an error."""
        while len(self._pending) >= _IN_FLIGHT:
            await self._deliver_oldest()
        try:
            sent = await self._producer.send(
                self._topic, value=value, key=session.encode(), headers=list(headers)
            )
        except MessageSizeTooLargeError as error:
            await self.deliver()
            msg = (
                f"{where}: a record of {len(value or b''):,} bytes is larger than topic"
                f" {self._topic} takes; {_BEFORE_AND_AFTER}. Raise the topic's max.message.bytes"
                " and send the file from this line on"
            )
            raise NotSentError(msg) from error
        self._pending.append((where, sent))

    async def deliver(self) -> None:
        """Wait until all that was sent is delivered."""
        while self._pending:
            await self._deliver_oldest()

    async def _deliver_oldest(self) -> None:
        where, sent = self._pending.popleft()
        try:
            await sent
        except NO_ANSWER as error:
            msg = f"{where}: not delivered in time, and perhaps lines after it ({error!r})"
            raise UnreachableError(msg) from error
        except KafkaError as error:
            msg = f"{where}: not delivered, and perhaps lines after it ({error})"
            raise NotSentError(msg) from error


@asynccontextmanager
async def kafka_producer(settings: Settings) -> AsyncIterator[Producer]:
    """Yield an idempotent producer that refuses what the records topic does not take.

    Raises:
        ConfigError: There is no such topic.
        UnreachableError: No broker answers.
    """
    # Not asked of the producer: its own question would make the broker create the topic.
    limit = (await describe_topic(settings, settings.records_topic, "Write")).max_message_bytes
    producer = AIOKafkaProducer(
        **client_settings(settings),
        enable_idempotence=True,
        acks="all",
        # The topic's own limit: a record that the broker would refuse stops here, in its place.
        max_request_size=limit,
        max_batch_size=min(_BATCH_BYTES, limit),
        linger_ms=5,
    )
    with broker_errors(settings, "Write"):
        try:
            await producer.start()
            yield producer
        finally:
            async with asyncio.timeout(_STOP_WITHIN_S):
                await producer.stop()


async def send_files(
    sender: Sender,
    files: Sequence[str],
    choice: Choice,
    *,
    advance: Callable[[int], None],
    end: bool,
) -> Summary:
    """Send the lines of all files, in order.

    Args:
        sender: Where to.
        files: Names; ``-`` is standard input.
        choice: How lines become records.
        advance: Told the bytes of each line that was read.
        end: Send an end of session for each session of a file, after it.

    Returns:
        What was delivered.
    """
    summary = Summary()
    for file in files:
        sessions = await _send_file(sender, file, choice, advance, summary)
        if end:
            for session in sessions:
                await sender.send(f"{file}: end of session {session}", session, None)
                summary.end_count += 1
        summary.sessions |= sessions.keys()
    await sender.deliver()
    return summary


async def _send_file(
    sender: Sender, file: str, choice: Choice, advance: Callable[[int], None], summary: Summary
) -> dict[str, None]:
    """Send the lines of one file and return its sessions, in order."""
    sessions: dict[str, None] = {}  # a set that keeps its order
    name, lines = await _opened(file, choice)
    reader = choice.reader(name, file, {})
    async for number, line in lines:
        advance(len(line) + 1)
        try:
            for session, value, headers in choice.read(reader, line):
                sessions[session] = None
                await sender.send(f"{file}:{number + 1}", session, value, headers)
                summary.record_count += 1
        except RecordError as error:
            await sender.deliver()
            msg = f"{file}:{number + 1}: {error}; {_BEFORE_AND_AFTER}"
            raise type(error)(msg) from error
    return sessions


async def _opened(file: str, choice: Choice) -> tuple[str, AsyncIterator[tuple[int, bytes]]]:
    """Return the name of a file's format, and its lines."""
    if file == STDIN:
        # An object of its own: a thread still reading sys.stdin at exit is a fatal error.
        stream = os.fdopen(0, "rb", closefd=False)
        # What a pipe may bring is not waited for to tell what it is.
        return choice.name_for(()), read_lines_aside(stream)
    with Path(file).open("rb") as stream:  # noqa: ASYNC230  # a file answers at once
        return choice.name_for(split_first(read_lines(stream))[0]), _lines(file)


async def _lines(file: str) -> AsyncIterator[tuple[int, bytes]]:
    with Path(file).open("rb") as stream:  # noqa: ASYNC230
        for line in read_lines(stream):
            yield line
