"""One run: workers and brokers, faults by the schedule, records all the time, then the verdict.

Everything shares one event loop, which the proxies need free: what blocks goes to threads.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from processor.demo.local_broker import HOST
from processor.kafka.topics import create_topics
from tests.chaos import cluster
from tests.chaos.crew import Crew
from tests.chaos.faults import Injector
from tests.chaos.judging import judged
from tests.chaos.proxy import Proxy
from tests.chaos.report import Outcome
from tests.chaos.schedule import SLOTS, WORKERS, draw
from tests.chaos.shapes import BUDGET, IDLE_S
from tests.chaos.takeovers import spreads
from tests.chaos.traffic import Traffic
from tests.chaos.watch import Watch
from tests.e2e.workers import Deployment

_PARTITIONS: Final = 6
_COPIES: Final = 3
_GRACE_S: Final = 1.0
_LOOK_EVERY_S: Final = 0.5
_LAG_EVERY_S: Final = 10.0
_READY_WITHIN_S: Final = 60.0
_CAUGHT_UP_WITHIN_S: Final = 150.0


@dataclass(frozen=True)
class Scene:
    """All that stands when the first fault comes."""

    app: Deployment
    crew: Crew
    injector: Injector
    watch: Watch
    say: Callable[[str], None]


async def play(
    seconds: float, seed: int, *, brokers: int, folder: Path, say: Callable[[str], None]
) -> Outcome:
    """Run for ``seconds`` and some minutes at most, and return what came of it.

    Args:
        seconds: How long records are produced; faults end some seconds earlier.
        seed: Draws the faults and what is said.
        brokers: 1 or 3.
        folder: Keeps the workers' and brokers' logs, and the brokers' data.
        say: Told how it goes, a line at a time.
    """
    schedule = draw(seconds, seed, brokers=brokers)
    async with _scene(brokers, folder, say) as scene:
        traffic = Traffic(scene.app.bootstrap, scene.app.records, seed, partitions=_PARTITIONS)
        started_at = asyncio.get_running_loop().time()
        async with _in_background(scene.watch.sample_forever(), _look_after(scene, started_at)):
            async with asyncio.TaskGroup() as both:
                both.create_task(traffic.flow(seconds))
                both.create_task(scene.injector.inject(schedule))
            say("all is mended and nothing more is said; catching up")
            await traffic.end_sessions()
            failures = await _catch_up(scene)
        await asyncio.gather(
            *(asyncio.to_thread(scene.crew.stop, slot) for slot in scene.crew.present())
        )
        judgement = await judged(scene.app, max_tokens=BUDGET)
        came = [(fault.kind, at) for fault, at in scene.injector.injected]
        return Outcome(
            f"seed {seed}, {seconds:g} s, {brokers} broker(s), {_PARTITIONS} partitions",
            spreads(came, scene.watch.samples),
            scene.crew.exits,
            traffic.counts,
            judgement,
            [*scene.crew.failures, *failures],
        )


@asynccontextmanager
async def _scene(brokers: int, folder: Path, say: Callable[[str], None]) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        nodes = cluster.plan_nodes(brokers, slots=SLOTS)
        proxies = [
            [await stack.enter_async_context(Proxy(node.slot_ports[slot])) for node in nodes]
            for slot in range(SLOTS)
        ]
        advertised = [[proxies[slot][at].port for slot in range(SLOTS)] for at in range(brokers)]
        starting = cluster.running(nodes, advertised, folder)
        running = await asyncio.to_thread(stack.enter_context, starting)
        app = Deployment(
            running,
            folder,
            partitions=_PARTITIONS,
            max_tokens=BUDGET,
            idle_s=IDLE_S,
            # Three in a hundred have no session, wherever chance puts them.
            max_dead_letter_ratio=1,
            max_consecutive_dead_letters=0,
            clock_grace_s=_GRACE_S,
        )
        stack.callback(_kill_all, app)
        await create_topics(app.topics, partitions=_PARTITIONS, replication=min(brokers, _COPIES))
        crew = Crew(app, {slot: _addresses(proxies[slot]) for slot in range(SLOTS)})
        for slot in range(WORKERS):
            crew.start(slot)
        await asyncio.to_thread(app.wait_for_members, WORKERS, within_s=_READY_WITHIN_S)
        injector = Injector(crew, running.brokers, proxies, say)
        yield Scene(app, crew, injector, Watch(app), say)


def _addresses(proxies: Sequence[Proxy]) -> str:
    return ",".join(f"{HOST}:{proxy.port}" for proxy in proxies)


def _kill_all(app: Deployment) -> None:
    for worker in app.workers:
        worker.kill()


@asynccontextmanager
async def _in_background(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run these until the block ends; a failure of theirs ends it."""
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(it) for it in work]
        yield
        for task in running:
            task.cancel()


async def _look_after(scene: Scene, started_at: float) -> None:
    now = asyncio.get_running_loop().time
    lag_at = now()
    while True:
        await asyncio.sleep(_LOOK_EVERY_S)
        scene.crew.look_after()
        if now() >= lag_at:
            lag_at = now() + _LAG_EVERY_S
            lag = await scene.watch.lag()
            shown = "no broker answers" if lag is None else f"lag {lag:,}"
            scene.say(f"{now() - started_at:7.1f} s  {shown}")


async def _catch_up(scene: Scene) -> list[str]:
    """Wait until everything is processed; return why that is not so in time."""
    now = asyncio.get_running_loop().time
    give_up_at = now() + _CAUGHT_UP_WITHIN_S
    while (lag := await scene.watch.lag()) != 0:
        if now() > give_up_at:
            tails = "\n".join(worker.tail() for worker in scene.app.workers if worker.is_wanted)
            return [f"lag {lag} is left after {_CAUGHT_UP_WITHIN_S:g} s; {tails}"]
        await asyncio.sleep(_LOOK_EVERY_S)
    return []
