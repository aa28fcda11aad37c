"""How soon others go on when a worker stops, dies or hangs, and what its state costs to bring back.

Takeovers: two workers share four partitions while records flow; something happens to one of them,
and the clock runs until every partition's committed offset has moved past where it stood. Restarts:
CPU of a new worker up to the first commit behind what it had to restore and replay, less that of
one that finds nothing. Every app is judged by the oracle before its figures count.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks.load import MAX_LINE_BYTES, SEED, SESSIONS
from benchmarks.measure import cpu_s
from processor.demo.local_broker import LocalBroker
from processor.demo.transcripts import transcripts
from tests.chaos.takeovers import takeover_s
from tests.chaos.watch import Watch
from tests.e2e.producing import Line, ends_of, lines_of
from tests.e2e.workers import Deployment, Worker, deployments

SESSION_TIMEOUT_S: Final = 10
RECORDS_PER_S: Final = 400
STORED_SESSIONS: Final = 200_000
OPEN_RECORDS: Final = 150_000
SHORT_REPLAY: Final = 20_000
_LIMIT_S: Final = 120.0
_CALM_SAMPLES: Final = 20
_FLOW_S: Final = 30
_LIVE_SESSIONS: Final = 40
_NOTHING_CLOSES: Final = 100_000_000


class Takeover(NamedTuple):
    """One kind of event and how long it took the rest to go on, in seconds."""

    event: str
    times_s: Sequence[float]


class Restart(NamedTuple):
    """One kind of state and what a new worker spent on it."""

    state: str
    count: int
    cpu_s: float
    wall_s: float


class Event(NamedTuple):
    """What happens to one of two workers."""

    name: str
    strike: Callable[[Deployment, Worker], object]
    is_static: bool = False
    """Whether the workers have instance ids, so that the group waits for one to come back."""


def _kill_and_restart(app: Deployment, worker: Worker) -> None:
    worker.kill()
    app.start(**_member(0))


def _member(number: int) -> dict[str, str]:
    return {"group_instance_id": f"bench-{number}"}


EVENTS: Final = (
    Event("SIGTERM", lambda _, worker: worker.terminate()),
    Event("kill -9", lambda _, worker: worker.kill()),
    Event("frozen (SIGSTOP)", lambda _, worker: worker.freeze()),
    Event("kill -9 of a static member, started again at once", _kill_and_restart, is_static=True),
)


def takeovers(
    broker: LocalBroker, folder: Path, repeats: int, say: Callable[[str], None]
) -> list[Takeover]:
    """Measure every event ``repeats`` times, each in an app of its own."""
    found = []
    for event in EVENTS:
        times = []
        for _ in range(repeats):
            with deployments(broker, folder) as deploy:
                app = deploy(
                    session_timeout_s=SESSION_TIMEOUT_S,
                    max_tokens=200,
                )
                times.append(_takeover_s(app, event))
        found.append(Takeover(event.name, times))
        say(f"{event.name}: {', '.join(f'{it:.1f}' for it in times)} s")
    return found


def _takeover_s(app: Deployment, event: Event) -> float:
    workers = [app.start(**(_member(it) if event.is_static else {})) for it in range(2)]
    app.wait_for_members(2)
    lines = [
        Line(b"session-%d" % (it % _LIVE_SESSIONS), b'{"number":%d,"text":"%0200d"}' % (it, it))
        for it in range(RECORDS_PER_S * _FLOW_S)
    ]
    with app.flow(lines, per_s=RECORDS_PER_S):
        took = asyncio.run(_watched(app, lambda: event.strike(app, workers[0])))
    for worker in workers:
        worker.kill()
    app.start()
    app.judged(within_s=_LIMIT_S)
    return took


async def _watched(app: Deployment, strike: Callable[[], object]) -> float:
    watch, now = Watch(app), asyncio.get_running_loop().time
    async with asyncio.timeout(_LIMIT_S), asyncio.TaskGroup() as tasks:
        sampling = tasks.create_task(watch.sample_forever())
        while len(watch.samples) < _CALM_SAMPLES:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.1)
        struck_at = now()
        await asyncio.to_thread(strike)
        while (took := takeover_s(watch.samples, struck_at)) is None:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)
        sampling.cancel()
    return took


def restarts(broker: LocalBroker, folder: Path, say: Callable[[str], None]) -> list[Restart]:
    """Measure what a stored session and a replayed record cost a new worker."""
    stored = [Line(b"session-%06d" % it, b'"one of many"') for it in range(STORED_SESSIONS)]
    opened = lines_of(
        transcripts(OPEN_RECORDS, SEED, sessions=SESSIONS, max_line_bytes=MAX_LINE_BYTES)
    )
    idle = _restart(broker, folder, [Line(b"one", b"1")], max_tokens=1)
    found = []
    for lines, settings in (
        (stored, {"max_tokens": 1}),
        (opened, {"max_tokens": _NOTHING_CLOSES}),
        (opened, {"max_tokens": _NOTHING_CLOSES, "max_replay_records": SHORT_REPLAY}),
    ):
        made = _restart(broker, folder, lines, **settings)
        found.append(made._replace(cpu_s=made.cpu_s - idle.cpu_s))
        say(f"{made.count:,} {made.state}: {found[-1].cpu_s:.2f} CPU-s")
    return found


def _restart(broker: LocalBroker, folder: Path, lines: Sequence[Line], **settings: int) -> Restart:
    with deployments(broker, folder) as deploy:
        app = deploy(idle_s=0, **settings)
        app.send(lines, producers=4)
        app.start()
        app.wait_until_caught_up(within_s=_LIMIT_S)
        app.workers[-1].terminate()
        replayed, sessions = _standing(app)
        app.send([Line(b"last-%d" % it, b"1", it) for it in range(app.partitions)])
        began_at = time.monotonic()
        worker = app.start()
        app.wait_until_caught_up(within_s=_LIMIT_S)
        spent, took = cpu_s(worker.pid), time.monotonic() - began_at
        app.send(ends_of(lines))  # chunks tell the oracle the budget
        app.judged(within_s=_LIMIT_S)
    if settings.get("max_tokens") == 1:
        return Restart("sessions stored", sessions, spent, took)
    return Restart("records replayed", replayed, spent, took)


def _standing(app: Deployment) -> tuple[int, int]:
    """Return how many records a restart would replay, and how many sessions are stored."""
    shown = app.run("state", "show", "--output", "json")
    shown.check_returncode()
    partitions = [json.loads(line) for line in shown.stdout.splitlines()]
    replayed = sum(it["seen"] - it["low"] for it in partitions)
    return replayed, sum(it["sessions"] for it in partitions)


def takeover_tables(found: Iterable[Takeover], restarted: Iterable[Restart]) -> str:
    """Return both tables in Markdown."""
    lines = ["| event | s: least | median | most | runs |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| {it.event} | {min(it.times_s):.1f} | {median(it.times_s):.1f} | {max(it.times_s):.1f} "
        f"| {len(it.times_s)} |"
        for it in found
    ]
    lines += ["", "| a restart's | number | CPU-s | k/CPU-s | s, start included |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    lines += [
        f"| {it.state} | {it.count:,} | {it.cpu_s:.2f} | {it.count / it.cpu_s / 1e3:.0f} "
        f"| {it.wall_s:.1f} |"
        for it in restarted
    ]
    return "\n".join(lines)
