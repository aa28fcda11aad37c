"""How long a chunk takes from the record that closed it to a reader, at a fixed rate of records.

A record waits in its open chunk for the next ones of its session, however fast the worker is. So
the clock starts at the record that closed the chunk, the first one of the next chunk: at its
CreateTime, which is when it was due to be sent, late or not. It stops when a read_committed reader
has the chunk. Every chunk counts that closed while records flowed, after a time to settle.
"""

import asyncio
import gc
import math
import time
from asyncio.subprocess import Process
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from benchmarks.contender import Contender, ContenderError, Host, Run, Source
from benchmarks.judging import Expected, expected_of
from benchmarks.load import Line, batching, create_topic, made_lines, send_all
from benchmarks.measure import check_alive, complaint, running
from tests.e2e.log_reading import partitions_of, read_log

LOADS: Final = (0.1, 0.5, 0.9)
SETTLE_S: Final = 2.0
_BURST: Final = 30_000
_TICK_S: Final = 0.005
_QUIET_S: Final = 2.0
_LIMIT_S: Final = 120.0
_PATIENCE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Latency:
    """One contender at one rate."""

    name: str
    load: float
    """Share of the records a second that it does when all are there."""

    rate: float
    """Records a second, as they were sent."""

    chunks: int
    p50_ms: float
    p99_ms: float
    most_ms: float


class Pace(NamedTuple):
    """How records flow."""

    rate: float
    """Records a second."""

    seconds: float
    """How long, after the time to settle."""

    @property
    def count(self) -> int:
        """Return how many records that takes."""
        return round(self.rate * (SETTLE_S + self.seconds))


def at_share(ordered: Sequence[float], share: float) -> float:
    """Return the least value that at least ``share`` of all do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def took_ms(
    expected: Expected, seen_at_ms: Mapping[bytes, Sequence[float]], window: tuple[float, float]
) -> Iterator[float]:
    """Return how long each chunk took that a record created within ``window`` closed.

    Args:
        expected: Of the whole log.
        seen_at_ms: When each session's chunks were seen, in order, all of them.
        window: Unix milliseconds, the end excluded.
    """
    for session, closed_at_ms in expected.closed_at_ms.items():
        for closed, seen in zip(closed_at_ms, seen_at_ms.get(session, ()), strict=True):
            if window[0] <= closed < window[1]:
                yield seen - closed


class Watch:
    """Notes when each session's chunks become visible."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer
        self.seen_at_ms: dict[bytes, list[float]] = defaultdict(list)
        self._latest_ms = 0.0

    async def note_forever(self) -> None:
        """Read chunks as they come."""
        while True:
            fetched = await self._consumer.getmany(timeout_ms=1_000)
            now_ms = _now_ms()
            for chunks in fetched.values():
                self._latest_ms = now_ms
                for chunk in chunks:
                    self.seen_at_ms[chunk.key].append(now_ms)

    async def wait_until_quiet(self, processes: Sequence[Process], run: Run) -> None:
        """Return when chunks came, and then none for ``_QUIET_S``.

        Raises:
            ContenderError: A process ended, or nothing came for long.
        """
        limit_ms = _now_ms() + _LIMIT_S * 1e3
        while not self._latest_ms or _now_ms() - self._latest_ms < _QUIET_S * 1e3:
            check_alive(processes, run, 0)
            if _now_ms() > limit_ms:
                raise ContenderError(complaint(f"was not done in {_LIMIT_S:g} s", run))
            await asyncio.sleep(0.1)


@asynccontextmanager
async def watching(run: Run) -> AsyncIterator[Watch]:
    """Watch the output topic from its first chunk, as soon as the contender has created it."""
    async with asyncio.timeout(_PATIENCE_S):
        while run.out_topic not in await run.host.admin.list_topics():  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.1)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=run.host.bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=8 << 20,
        check_crcs=False,
    )
    await consumer.start()
    try:
        consumer.assign(await partitions_of(run.host.bootstrap, run.out_topic))
        watch = Watch(consumer)
        async with asyncio.TaskGroup() as tasks:
            noting = tasks.create_task(watch.note_forever())
            yield watch
            noting.cancel()
    finally:
        await consumer.stop()


async def measure_latency(
    contender: Contender, host: Host, folder: Path, name: str, pace: Pace
) -> tuple[float, list[float]]:
    """Let records flow and judge what came out.

    Args:
        contender: Started before they flow, and given a burst to wake up with.
        host: Its broker.
        folder: For logs and state.
        name: Of the app.
        pace: How they flow.

    Returns:
        The rate that was sent, and how long each chunk took, in milliseconds.
    """
    lines = list(made_lines(_BURST + pace.count))
    value_bytes = sum(len(line.value) for line in lines)
    source = Source(f"{name}-records", len(lines), value_bytes, Expected({}, {}, {}))
    run = Run(host, source, name, folder)
    await create_topic(host.bootstrap, source.topic)
    gc.collect()
    gc.freeze()  # a look through all these lines would hold up the clock
    async with (
        running(contender, run) as processes,
        batching(host.bootstrap) as producer,
        watching(run) as watch,
    ):
        created_at_ms = round(_now_ms())
        burst = [line._replace(created_at_ms=created_at_ms) for line in lines[:_BURST]]
        await send_all(producer, source.topic, burst)
        await watch.wait_until_quiet(processes, run)
        window_ms, sent_rate = await _flow(producer, source.topic, lines[_BURST:], pace)
        await watch.wait_until_quiet(processes, run)
    gc.unfreeze()
    log = await read_log(host.bootstrap, source.topic, settled=True, patience_s=_PATIENCE_S)
    source = replace(source, expected=expected_of(log))
    await contender.judge(replace(run, source=source))
    return sent_rate, list(took_ms(source.expected, watch.seen_at_ms, window_ms))


async def _flow(
    producer: AIOKafkaProducer, topic: str, lines: Sequence[Line], pace: Pace
) -> tuple[tuple[float, float], float]:
    """Send lines when they are due; return the window that counts and the rate that came of it."""
    began_at_ms, sent = _now_ms(), 0
    while sent < len(lines):
        due = min(len(lines), int((_now_ms() - began_at_ms) / 1e3 * pace.rate))
        stamped = [
            line._replace(created_at_ms=int(began_at_ms + at / pace.rate * 1e3))
            for at, line in enumerate(lines[sent:due], sent)
        ]
        await send_all(producer, topic, stamped)
        sent = due
        await asyncio.sleep(_TICK_S)
    sent_rate = len(lines) / (_now_ms() - began_at_ms) * 1e3
    return (began_at_ms + SETTLE_S * 1e3, began_at_ms + len(lines) / pace.rate * 1e3), sent_rate


def _now_ms() -> float:
    return time.time_ns() / 1e6
