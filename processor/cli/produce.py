"""``processor produce``: lines of files into the records topic."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import click
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from processor.cli.options import KAFKA, session_options, settings_options
from processor.core.errors import RecordError, UnreachableError
from processor.kafka.connection import NO_ANSWER, broker_errors, client_settings
from processor.kafka.topics import describe_topic
from processor.settings import Settings
from processor.sources.jsonl import SessionRule, read_lines, read_lines_aside

STDIN: Final = "-"
BEFORE_AND_AFTER: Final = "all before it was sent, nothing after it"
_IN_FLIGHT: Final = 1_000
_BATCH_BYTES: Final = 64 * 1024
_STOP_WITHIN_S: Final = 10.0


class Producer(Protocol):
    """The one thing asked of a Kafka producer."""

    async def send(self, topic: str, *, value: bytes | None, key: bytes) -> Awaitable[object]:
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

    async def send(self, where: str, session: str, value: bytes | None) -> None:
        """Send one message; ``where`` names its line in an error."""
        while len(self._pending) >= _IN_FLIGHT:
            await self._deliver_oldest()
        try:
            sent = await self._producer.send(self._topic, value=value, key=session.encode())
        except MessageSizeTooLargeError as error:
            await self.deliver()
            msg = (
                f"{where}: a record of {len(value or b''):,} bytes is larger than topic"
                f" {self._topic} takes; {BEFORE_AND_AFTER}. Raise the topic's max.message.bytes"
                " and send the file from this line on"
            )
            raise click.ClickException(msg) from error
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
            raise click.ClickException(msg) from error


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--end", is_flag=True, help="End each session after its file.")
@session_options
@settings_options(*KAFKA, "records_topic")
def produce(settings: Settings, rule: SessionRule, files: tuple[str, ...], *, end: bool) -> None:
    """Send each line of each FILE to the records topic, as it is; - reads standard input.

    The key is the line's session. An empty line is a record too: nothing is left out.
    """
    if STDIN in files and rule == SessionRule():
        msg = "standard input has no name: use --session NAME or --session-field PATH"
        raise click.UsageError(msg)
    for file in files:
        if file != STDIN and not Path(file).is_file():
            raise click.FileError(file, hint="not a file; - reads standard input")
    with click.progressbar(
        length=sum(Path(file).stat().st_size for file in files if file != STDIN),
        label="sending",
        file=click.get_text_stream("stderr"),
        hidden=STDIN in files,
    ) as bar:
        summary = asyncio.run(_produce(settings, files, rule, advance=bar.update, end=end))
    click.echo(_sentence(summary, settings.records_topic))


async def _produce(
    settings: Settings,
    files: tuple[str, ...],
    rule: SessionRule,
    *,
    advance: Callable[[int], None],
    end: bool,
) -> Summary:
    async with _kafka_producer(settings) as producer:
        sender = Sender(producer, settings.records_topic)
        return await send_files(sender, files, rule, advance=advance, end=end)


@asynccontextmanager
async def _kafka_producer(settings: Settings) -> AsyncIterator[Producer]:
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
    files: tuple[str, ...],
    rule: SessionRule,
    *,
    advance: Callable[[int], None],
    end: bool,
) -> Summary:
    """Send the lines of all files, in order.

    Args:
        sender: Where to.
        files: Names; ``-`` is standard input.
        rule: Names the session of each line.
        advance: Told the bytes of each line that was read.
        end: Send an end of session for each session of a file, after it.

    Returns:
        What was delivered.
    """
    summary = Summary()
    for file in files:
        sessions: dict[str, None] = {}  # a set that keeps its order
        async for number, line in _lines(file):
            advance(len(line) + 1)
            try:
                session = rule.session_for(line, file, number)
            except RecordError as error:
                await sender.deliver()
                msg = f"{error}; {BEFORE_AND_AFTER}"
                raise type(error)(msg) from error
            sessions[session] = None
            await sender.send(f"{file}:{number + 1}", session, line)
            summary.record_count += 1
        if end:
            for session in sessions:
                await sender.send(f"{file}: end of session {session}", session, None)
                summary.end_count += 1
        summary.sessions |= sessions.keys()
    await sender.deliver()
    return summary


async def _lines(file: str) -> AsyncIterator[tuple[int, bytes]]:
    if file == STDIN:
        # An object of its own: a thread still reading sys.stdin at exit is a fatal error.
        async for line in read_lines_aside(os.fdopen(0, "rb", closefd=False)):
            yield line
    else:
        with Path(file).open("rb") as stream:  # noqa: ASYNC230  # a file answers at once
            for line in read_lines(stream):
                yield line


def _sentence(summary: Summary, topic: str) -> str:
    parts = [f"sent {summary.record_count:,} records in {len(summary.sessions):,} sessions"]
    parts.append(f"to {topic}")
    if summary.end_count:
        parts.append(f"and {summary.end_count:,} ends of session")
    return " ".join(parts)
