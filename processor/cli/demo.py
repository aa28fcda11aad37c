"""``processor demo``: the main job from nothing, with a worker killed half-way, and the proof."""

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, aclosing
from pathlib import Path
from typing import Final

import click
from aiokafka import AIOKafkaProducer

from processor.cli.tail import describe
from processor.client.delivery import following
from processor.demo.brokers import Broker, choose
from processor.demo.processes import Verb, remove_from_group
from processor.demo.transcripts import transcripts
from processor.kafka.connection import client_settings
from processor.kafka.consumer_settings import client_id
from processor.kafka.topics import create_topics
from processor.settings_loading import load_settings
from processor.sources.jsonl import read_lines
from processor.wire_models import decode_chunk

_RECORDS: Final = 12_000
_SESSIONS: Final = 41
_SEED: Final = 20
#: Seconds that sending takes, so that there is something to see; and to kill a worker in.
_PACE_S: Final = 12.0
_BURST: Final = 100
_JOIN_S: Final = 4.0
_WITHIN_S: Final = 60.0

Lines = list[tuple[str, bytes]]


@click.command()
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--broker",
    type=click.Choice(["given", "docker", "jvm", "embedded"]),
    default="embedded",
    show_default=True,
    help="Which Kafka to use; given is that of KAFKA_BOOTSTRAP_SERVERS.",
)
def demo(files: tuple[Path, ...], broker: str) -> int:
    """Chunk made transcripts, or FILES, with two workers; kill one; prove that nothing is lost.

    Starts a broker of its own in a temporary folder and leaves nothing behind.
    """
    # A supervisor's SIGTERM must clean up as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    lines = (
        list(_lines_of(files)) if files else list(transcripts(_RECORDS, _SEED, sessions=_SESSIONS))
    )
    with ExitStack() as stack:
        _say(f"starting a Kafka broker ({broker})")
        kafka = choose(broker)
        stack.callback(kafka.stop)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="processor-demo-")))
        return _Demo(kafka, folder, stack).run(lines)


class _Demo:
    def __init__(self, broker: Broker, folder: Path, stack: ExitStack) -> None:
        app_id = f"demo-{time.time_ns():x}"
        # What a person has set is about the given broker; the others know no logins.
        is_given = broker.name == "given"
        self._environment = {} if is_given else {"KAFKA_SECURITY_PROTOCOL": "PLAINTEXT"}
        self._environment |= {
            "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap,
            "PROCESSOR_APP_ID": app_id,
            "PROCESSOR_RECORDS_TOPIC": f"{app_id}-records",
            "PROCESSOR_CHUNKS_TOPIC": f"{app_id}-chunks",
            "PROCESSOR_DEAD_LETTER_TOPIC": f"{app_id}-records.dead-letter",
            "PROCESSOR_SESSION_TIMEOUT_S": "6",
            "PROCESSOR_LOG_LEVEL": "warning",
        }
        self._settings = load_settings(environ=os.environ | self._environment)
        self._broker = broker
        self._folder = folder
        self._stack = stack

    def run(self, lines: Lines) -> int:
        asyncio.run(create_topics(self._settings))
        first, second = self._worker("1"), self._worker("2")
        asyncio.run(self._story(lines, first, second))
        if second.interrupt() != 0:
            _say("worker 2 failed:\n" + (self._folder / "2.log").read_text())
        _say("stopped; reading both topics again to prove it")
        with Verb("verify", environment=self._environment) as verify:
            return verify.wait()

    def _worker(self, name: str) -> Verb:
        log = self._folder / f"{name}.log"
        return self._stack.enter_context(Verb("worker", environment=self._environment, log=log))

    async def _story(self, lines: Lines, first: Verb, second: Verb) -> None:
        sessions = {session for session, _ in lines}
        showing = asyncio.create_task(self._show_until_ended(sessions))
        await asyncio.sleep(_JOIN_S)
        _say(f"sending {len(lines):,} records of {len(sessions):,} sessions")
        await self._send(lines[: len(lines) // 2])
        _say(f"killing worker 1 (process {first.pid}) with -9")
        first.kill()
        if not self._broker.evicts_members:
            # The embedded broker waits for a dead member for ever.
            dead = client_id(self._settings.app_id, first.pid)
            await remove_from_group(self._broker.bootstrap, self._settings.app_id, dead)
        await self._send(lines[len(lines) // 2 :], ended=sorted(sessions))
        _say("all sent, each session ended; worker 2 takes over what worker 1 left")
        deadline = time.monotonic() + _WITHIN_S
        while not showing.done() and second.is_running and time.monotonic() < deadline:
            await asyncio.wait([showing], timeout=0.5)
        showing.cancel()

    async def _show_until_ended(self, sessions: set[str]) -> None:
        open_sessions = set(sessions)
        async with following(self._settings) as (messages, _), aclosing(messages):
            async for message in messages:
                chunk = decode_chunk(message.value or b"")
                click.echo(describe(chunk))
                if chunk.final:
                    open_sessions.discard(chunk.session)
                if not open_sessions:
                    return

    async def _send(self, lines: Lines, ended: Iterable[str] = ()) -> None:
        producer = AIOKafkaProducer(
            **client_settings(self._settings), enable_idempotence=True, linger_ms=10
        )
        topic = self._settings.records_topic
        await producer.start()
        try:
            for number, (session, line) in enumerate(lines):
                await producer.send(topic, line, key=session.encode())
                if number % _BURST == 0:
                    await asyncio.sleep(_PACE_S / 2 * _BURST / len(lines))
            for session in ended:
                await producer.send(topic, None, key=session.encode())
        finally:
            await producer.stop()


def _lines_of(files: tuple[Path, ...]) -> Iterator[tuple[str, bytes]]:
    for file in files:
        with file.open("rb") as stream:
            yield from ((file.stem, line) for _, line in read_lines(stream))


def _say(text: str) -> None:
    click.secho(f"demo: {text}", bold=True)
