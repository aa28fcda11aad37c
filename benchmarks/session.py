"""Measures contenders in turns on one broker, so that all see the same state of the machine."""

import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from aiokafka.admin import AIOKafkaAdminClient

from benchmarks.contender import Contender, ContenderError, Host, Run, Source
from benchmarks.contenders import OURS, PATIENCE_S
from benchmarks.figures import Found, Row
from benchmarks.judging import expected_of
from benchmarks.latency import LOADS, Latency, Pace, measure_latency, run_of
from benchmarks.load import Line, load, made_lines
from benchmarks.measure import Figures, measure
from processor.demo.kafka_jvm import start_jvm
from tests.e2e.log_reading import read_log

T = TypeVar("T")


class Session:
    """A broker, and what is loaded there.

    Attributes:
        say: Takes a line that shows how far it is.
        failed: A line for each peer that failed, which goes on without it.
    """

    def __init__(self, host: Host, folder: Path, say: Callable[[str], None]) -> None:
        self._host, self._folder = host, folder
        self._tag = f"bench-{uuid.uuid4().hex[:6]}"  # a given broker may hold an earlier one's
        self._sources: dict[int, Source] = {}
        self.say = say
        self.failed: list[str] = []

    async def throughput(
        self, contenders: Mapping[str, Contender], runs: int, records: int
    ) -> list[Row]:
        """Run all contenders ``runs`` times, and judge each time what they wrote.

        Raises:
            ContenderError: One of ours failed, or its output is wrong.
        """
        rows = []
        for number in range(1, runs + 1):
            for name, contender in contenders.items():
                source = await self._source(round(records * contender.scale))
                run = Run(self._host, source, f"{self._tag}-{name}-{number:02}", self._folder)
                found = await self._unless_failed(name, self._measured(contender, run))
                if found is not None:
                    rows.append(Row(number, name, found))
        return rows

    async def _measured(self, contender: Contender, run: Run) -> Figures:
        found = await measure(contender, run)
        self.say(
            f"{run.name}: {found.records_per_cpu_s / 1e3:.1f} k/CPU-s, "
            f"{found.records_per_s / 1e3:.1f} k/s; {await contender.judge(run)}"
        )
        return found

    async def latencies(
        self, contenders: Mapping[str, Contender], rows: Sequence[Row], seconds: float
    ) -> list[Latency]:
        """Measure latency at shares of what each contender did a second in ``rows``.

        Raises:
            ContenderError: One of ours failed, or its output is wrong.
        """
        paces = {
            name: [Pace(share, share * most, seconds) for share in LOADS]
            for name, most in _records_per_s(rows).items()
            if name in contenders
        }
        counts = [pace.records for each in paces.values() for pace in each]
        lines = list(made_lines(max(counts, default=0)))
        found = []
        for name, each in paces.items():
            for pace in each:
                timing = self._timed(name, contenders[name], lines[: pace.records], pace)
                timed = await self._unless_failed(name, timing)
                if timed is not None:
                    found.append(timed)
        return found

    async def _timed(
        self, name: str, contender: Contender, lines: Sequence[Line], pace: Pace
    ) -> Latency:
        app = f"{self._tag}-{name}-at-{100 * pace.load:.0f}"
        run = run_of(lines, self._host, app, self._folder)
        timed = await measure_latency(name, contender, run, lines, pace)
        self.say(
            f"{app}, {timed.rate:,.0f} records/s: p50 {timed.p50_ms:.0f}, p99 {timed.p99_ms:.0f} ms"
        )
        return timed

    async def _unless_failed(self, name: str, measuring: Awaitable[T]) -> T | None:
        """Return what was measured; of a peer that failed, nothing."""
        try:
            return await measuring
        except (ContenderError, TimeoutError) as error:
            if name in OURS:
                raise
            self.say(f"{name} failed: {error}")
            [reason, *_] = f"{type(error).__name__}: {error}".splitlines()
            self.failed.append(f"{name}, once: {reason}")
            return None

    async def _source(self, count: int) -> Source:
        if count not in self._sources:
            topic = f"{self._tag}-{count}-records"
            value_bytes = await load(self._host.bootstrap, topic, count)
            log = await read_log(self._host.bootstrap, topic, settled=True, patience_s=PATIENCE_S)
            self._sources[count] = Source(topic, count, value_bytes, expected_of(log))
            self.say(f"loaded {count:,} lines, {value_bytes / count:.0f} bytes mean")
        return self._sources[count]


def _records_per_s(rows: Sequence[Row]) -> dict[str, float]:
    return {row.name: row.figures.records_per_s for row in Found(rows).medians()}


@asynccontextmanager
async def host(folder: Path) -> AsyncIterator[Host]:
    """Give the broker that the environment names, or one started here."""
    named = os.environ.get("KAFKA_BOOTSTRAP_SERVERS")
    if named:
        async with _admin(named) as admin:
            yield Host(named, admin)
        return
    broker = start_jvm(folder / "kafka")
    try:
        async with _admin(broker.bootstrap) as admin:
            yield Host(broker.bootstrap, admin, broker.pid, broker.data_dir)
    finally:
        broker.stop()


@asynccontextmanager
async def _admin(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()
