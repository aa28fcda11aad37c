"""Carries out a schedule: each fault in a task of its own, one at a time for each target."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from processor.demo.local_broker import LocalBroker
from tests.chaos import stepped_worker
from tests.chaos.crew import Crew
from tests.chaos.proxy import Break, Proxy
from tests.chaos.schedule import SLOTS, Fault


class Injector:
    """Breaks things and mends them.

    Args:
        crew: The workers.
        brokers: The brokers.
        proxies: Of each slot, one in front of each broker.
        say: Told of each fault as it comes.

    Attributes:
        injected: What came, and when by the loop's clock.
    """

    def __init__(
        self,
        crew: Crew,
        brokers: Sequence[LocalBroker],
        proxies: Sequence[Sequence[Proxy]],
        say: Callable[[str], None],
    ) -> None:
        self._crew, self._brokers, self._proxies, self._say = crew, brokers, proxies, say
        self._locks: defaultdict[tuple[bool, int], asyncio.Lock] = defaultdict(asyncio.Lock)
        self.injected: list[tuple[Fault, float]] = []

    async def inject(self, faults: Iterable[Fault]) -> None:
        """Let every fault come and go; return when all is mended."""
        started_at = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as tasks:
            for fault in faults:
                tasks.create_task(self._inject(fault, started_at))

    async def _inject(self, fault: Fault, started_at: float) -> None:
        now = asyncio.get_running_loop().time
        await asyncio.sleep(started_at + fault.at_s - now())
        # A broker that takes long to start keeps its next fault waiting.
        async with self._locks[fault.is_brokers, 0 if fault.is_brokers else fault.target]:
            self._say(str(fault))
            self.injected.append((fault, now()))
            await self._break_and_mend(fault)

    async def _break_and_mend(self, fault: Fault) -> None:
        match fault.kind:
            case "worker kill":
                await asyncio.to_thread(self._crew.kill, fault.target)
                await asyncio.sleep(fault.for_s)
                self._crew.start(fault.target)
            case "worker stop":
                await asyncio.to_thread(self._crew.stop, fault.target)
                await asyncio.sleep(fault.for_s)
                self._crew.start(fault.target)
            case "worker join":
                self._crew.start(fault.target)
                await asyncio.sleep(fault.for_s)
                await asyncio.to_thread(self._crew.stop, fault.target)
            case "worker freeze":
                self._crew.freeze(fault.target)
                await asyncio.sleep(fault.for_s)
                self._crew.thaw(fault.target)
            case "clock forward" | "clock back":
                is_forward = fault.kind == "clock forward"
                number = stepped_worker.FORWARD if is_forward else stepped_worker.BACK
                await asyncio.to_thread(self._crew.step_clock, fault.target, number)
            case "cut" | "deafness" | "reset":
                await self._break_network(fault, fault.kind)
            case "broker kill" | "broker freeze":
                await self._break_broker(fault)

    async def _break_network(self, fault: Fault, how: Break) -> None:
        self._crew.outage_begins([fault.target])
        for proxy in self._proxies[fault.target]:
            await proxy.break_off(how)
        await asyncio.sleep(fault.for_s)
        for proxy in self._proxies[fault.target]:
            proxy.mend()
        self._crew.outage_ends([fault.target])

    async def _break_broker(self, fault: Fault) -> None:
        broker = self._brokers[fault.target]
        self._crew.outage_begins(range(SLOTS))
        if fault.kind == "broker kill":
            await asyncio.to_thread(broker.kill)
            await asyncio.sleep(fault.for_s)
            await asyncio.to_thread(broker.start)
        else:
            await asyncio.to_thread(broker.freeze)
            await asyncio.sleep(fault.for_s)
            broker.thaw()
        self._crew.outage_ends(range(SLOTS))
