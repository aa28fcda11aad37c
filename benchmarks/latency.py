"""How long a chunk takes from the record that closed it to a reader, at a fixed rate of records.

A record waits in its open chunk for the next ones of its session, however fast the worker is. So
the clock starts at the record that closed the chunk, the first one of the next chunk: at its
CreateTime, which is when it was due to be sent, late or not. It stops when a read_committed reader
has the chunk. Every chunk counts that closed while records flowed, after a time to settle.
"""

import asyncio
import contextlib
import gc
import math
import time
from asyncio.subprocess import Process
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from benchmarks.contender import Contender, ContenderError, Host, Run, Source
from benchmarks.judging import Expected, expected_of
from benchmarks.load import Line, batching, create_topic, send_all
from benchmarks.measure import changelog_ratio, check_alive, complaint, running
from tests.e2e.log_reading import Message, partitions_of

LOADS: Final = (0.1, 0.5, 0.9)
SETTLE_S: Final = 2.0
BURST: Final = 30_000
_TICK_S: Final = 0.005
_LIMIT_S: Final = 120.0


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
    changelog_ratio: float | None
    """As in ``Figures``, but of records that come at a pace."""


class Pace(NamedTuple):
    """How records flow: at a rate, for some seconds after those to settle."""

    load: float
    rate: float
    seconds: float

    @property
    def records(self) -> int:
        """Return how many records that takes, with those that come first to wake the contender."""
        return BURST + round(self.rate * (SETTLE_S + self.seconds))


def summed_up(
    name: str, load: float, rate: float, took_ms: Iterable[float], changelog: float | None
) -> Latency:
    """Return what is said of all chunks of a pace.

    Raises:
        ContenderError: There is none.
    """
    ordered = sorted(took_ms)
    if not ordered:
        message = f"{name} closed no chunk at {rate:.0f} records/s: give it more of --latency"
        raise ContenderError(message)
    return Latency(
        name=name,
        load=load,
        rate=rate,
        chunks=len(ordered),
        p50_ms=at_share(ordered, 0.5),
        p99_ms=at_share(ordered, 0.99),
        most_ms=ordered[-1],
        changelog_ratio=changelog,
    )


def at_share(ordered: Sequence[float], share: float) -> float:
    """Return the least value that at least ``share`` of all do not exceed."""
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def took_ms(
    expected: Expected,
    seen_at_ms: Mapping[bytes, Sequence[float]],
    first: int,
    due_at_ms: Callable[[int], float],
) -> Iterator[float]:
    """Return how long each chunk took from the record that closed it, in milliseconds.

    Args:
        expected: All chunks.
        seen_at_ms: When each session's chunks were seen, in order, all of them.
        first: The offset from which on a record counts.
        due_at_ms: Tells when the record at an offset was due.
    """
    for session, offsets in expected.closed_by.items():
        for offset, seen in zip(offsets, seen_at_ms.get(session, ()), strict=True):
            if offset >= first:
                yield seen - due_at_ms(offset)


class Watch:
    """Notes when each session's chunks become visible."""

    def __init__(self, consumer: AIOKafkaConsumer) -> None:
        self._consumer = consumer
        self._count = 0
        self.seen_at_ms: dict[bytes, list[float]] = defaultdict(list)

    async def note_forever(self) -> None:
        """Read chunks as they come."""
        while True:
            fetched = await self._consumer.getmany(timeout_ms=1_000)
            now_ms = _now_ms()
            for chunks in fetched.values():
                self._count += len(chunks)
                for chunk in chunks:
                    self.seen_at_ms[chunk.key].append(now_ms)

    async def wait_for(self, count: int, processes: Sequence[Process], run: Run) -> None:
        """Return when so many chunks have come.

        Raises:
            ContenderError: A process ended, or it took too long.
        """
        limit_ms = _now_ms() + _LIMIT_S * 1e3
        while self._count < count:
            check_alive(processes, run, 0)
            if _now_ms() > limit_ms:
                what = f"wrote {self._count:,} of {count:,} chunks in {_LIMIT_S:g} s"
                raise ContenderError(complaint(what, run))
            await asyncio.sleep(0.1)


@contextlib.asynccontextmanager
async def watching(run: Run) -> AsyncIterator[Watch]:
    """Watch the output topic from its first chunk, as soon as the contender has created it.

    Raises:
        TimeoutError: It has not.
    """
    async with asyncio.timeout(_LIMIT_S):
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
    consumer.assign(await partitions_of(run.host.bootstrap, run.out_topic))
    watch = Watch(consumer)
    noting = asyncio.create_task(watch.note_forever())
    try:
        yield watch
    finally:
        noting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await noting
        await consumer.stop()


def run_of(lines: Sequence[Line], host: Host, name: str, folder: Path) -> Run:
    """Return a run over a topic that will hold ``lines``, its offsets counted in all of them."""
    expected = expected_of([Message(0, at, 0, *line[:2]) for at, line in enumerate(lines)])
    source = Source(f"{name}-records", len(lines), sum(len(line.value) for line in lines), expected)
    return Run(host, source, name, folder)


async def measure_latency(
    name: str, contender: Contender, run: Run, lines: Sequence[Line], pace: Pace
) -> Latency:
    """Let the run's lines flow, and judge what came out.

    Args:
        name: Of the contender.
        contender: Started before they flow, and given a burst to wake up with.
        run: Made by ``run_of`` of the same lines; its topic is not there yet.
        lines: As many as ``pace`` takes.
        pace: How they flow.
    """
    host, source, expected = run.host, run.source, run.source.expected
    await create_topic(host.bootstrap, source.topic)
    async with (
        running(contender, run) as processes,
        batching(host.bootstrap) as producer,
        watching(run) as watch,
    ):
        await send_all(producer, source.topic, lines[:BURST])
        woken = sum(offset < BURST for each in expected.closed_by.values() for offset in each)
        await watch.wait_for(woken, processes, run)
        gc.collect()
        gc.freeze()  # a look through all these lines would hold up the clock
        began_at_ms, rate = await _flow(producer, source.topic, lines[BURST:], pace)
        gc.unfreeze()
        await watch.wait_for(expected.chunk_count, processes, run)
    await contender.judge(run)
    counted = took_ms(
        expected,
        watch.seen_at_ms,
        len(lines) - round(pace.rate * pace.seconds),
        lambda offset: began_at_ms + (offset - BURST) / pace.rate * 1e3,
    )
    return summed_up(name, pace.load, rate, counted, changelog_ratio(run))


async def _flow(
    producer: AIOKafkaProducer, topic: str, lines: Sequence[Line], pace: Pace
) -> tuple[float, float]:
    """Send lines when they are due; return when that began, and the rate that came of it."""
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
    return began_at_ms, len(lines) / (_now_ms() - began_at_ms) * 1e3


def _now_ms() -> float:
    return time.time_ns() / 1e6
