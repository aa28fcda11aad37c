"""A simulated worker: the real partitions and agent, with a group's member and a fetcher around.

What Faust and aiokafka do in a real worker is told here anew and in short: the member learns late
of a rebalance, holds its partitions, joins, and opens what it was given; the fetcher asks for what
comes after its positions, stamps it, and puts it into a queue that no reopening empties.
"""

import asyncio
from dataclasses import replace

from processor.agents.chunker import chunker
from processor.metrics import NoMetrics
from processor.protocol.partition import Partition, Phase
from processor.protocol.partitions import Partitions
from processor.protocol.port import Batch, Head
from tests.simulation.client import SimulatedPartitionBroker
from tests.simulation.oracle import AGE_MS, IDLE_MS, ViolationError
from tests.simulation.scheduler import Process

COMMIT_INTERVAL_S = 0.5
REVOKE_TIMEOUT_S = 5.0
STOP_TIMEOUT_S = 10.0
GRACE_MS = 5000
_QUEUED_BATCHES = 3
_FETCH_WAIT_MS = 1000


class WorkerClock:
    """A worker's clock, a little off."""

    def __init__(self, world, skew_ms):
        self._world, self._skew_ms = world, skew_ms

    def now_ms(self):
        return self._world.now_ms + self._skew_ms


class Worker(Process):
    """One worker of the group.

    Attributes:
        generation: Of the group, as it last joined.
        rebalances: How many it has learnt of.
        may_learn: Whether the next one may reach it.
        fatal: Why it has to end, once it has.
    """

    def __init__(self, name, world, skew_ms=0):
        super().__init__(name, world)
        self.clock = WorkerClock(world, skew_ms)
        self.generation = self.rebalances = 0
        # Who starts joins at once.
        self.may_learn = True
        self.fatal = None
        self.partitions = Partitions(self._make, COMMIT_INTERVAL_S, self.end)
        self.positions = {}
        self.queue = []
        self.asked = {}
        self._assigned = asyncio.Event()
        self._numbers = set()
        for part in (
            self._belong(),
            self._recover(),
            self._fetch(),
            chunker(self.partitions)(self._batches()),
            self.partitions.commit_forever(),
        ):
            self.loop.create_task(part)
        self.run()

    def stop(self):
        """Begin to end as on SIGTERM."""
        self.loop.create_task(self._leave())
        self.run()

    def end(self, error):
        """End because of ``error``, as soon as this step is over."""
        if self.fatal is None and not self.is_dead:
            self.fatal = error
            self.world.ended.append(self)
            self.world.say(self.name, "gives up:", type(error).__name__, error)

    def is_owner(self, number):
        """Tell whether the producer here is the last one of the partition."""
        partition = next((it for it in self.partitions if it.number == number), None)
        if partition is None:
            return False
        broker = partition._broker  # noqa: SLF001 - nobody else need know
        newest = broker.partition.ids[broker.transactional_id].epoch
        return broker.producer is not None and broker.producer.epoch == newest

    # The group's member.

    def is_member(self):
        return self.generation == self.world.group.generation

    def seek(self, number, offset, incarnation):
        self.positions[number] = (offset, incarnation)

    async def _belong(self):
        group = self.world.group
        while True:
            await self.ask(
                "learns of a rebalance",
                lambda: None,
                is_local=True,
                is_ready=self._can_learn,
            )
            self.may_learn = not self.world.learns_late
            self.rebalances += 1
            await self.partitions.revoke(REVOKE_TIMEOUT_S)
            self.generation, self._numbers = await self.ask(
                "joins", lambda: group.join(self.name), is_local=True
            )
            self.world.say(self.name, f"has {self._numbers} in generation {self.generation}")
            self.positions = {}
            self._assigned.set()

    def _can_learn(self):
        return self.may_learn and self.generation != self.world.group.generation

    async def _recover(self):
        while True:
            await self._assigned.wait()
            self._assigned.clear()
            joined = (self.generation, self.rebalances)

            def is_current(joined=joined):
                return (self.generation, self.rebalances) == joined

            await self.partitions.assign(self._numbers, is_current)

    async def _leave(self):
        await self.partitions.close(STOP_TIMEOUT_S)
        await self.ask("leaves", lambda: self.world.leave(self), is_local=True)

    # The fetcher and the agent's stream.

    async def _fetch(self):
        while True:
            asked_at_ms = self.clock.now_ms()
            found = await self.ask(
                "fetch",
                lambda asked_at_ms=asked_at_ms: self._answer(asked_at_ms),
                is_local=True,
                is_ready=self._can_fetch,
            )
            self.queue += found

    async def _batches(self):
        while True:
            batch = await self.ask(
                "feed", lambda: self.queue.pop(0), is_local=True, is_ready=lambda: self.queue
            )
            yield batch
            self._check_promptness(batch)

    def _check_promptness(self, batch):
        """Nothing is open beyond its deadline after a batch that tells of the log's end."""
        partition = next((it for it in self.partitions if it.number == batch.partition), None)
        if partition is None or partition.phase is not Phase.READY or batch.head is None:
            return
        state = partition.state
        if batch.incarnation != partition.incarnation or state.is_replaying:
            return
        if state.position < batch.head.high_watermark:
            return
        for session in state.sessions:
            held = state.sessions.state(session)
            due = min(held.last_at_ms + IDLE_MS, held.opened_at_ms + AGE_MS)
            if held.records and due < batch.head.asked_at_ms:
                message = f"[{batch.partition}] session {session} is open beyond its deadline"
                raise ViolationError(message)

    def _can_fetch(self):
        return len(self.queue) < _QUEUED_BATCHES and any(map(self._has_news, self.positions))

    def _has_news(self, number):
        records = self.world.partitions[number].records
        is_behind = self.positions[number][0] < records.stable_end
        return is_behind or self.clock.now_ms() >= self.asked.get(number, 0) + _FETCH_WAIT_MS

    def _answer(self, asked_at_ms):
        """Return what the broker answers to a fetch of the first partition with news."""
        number = next(filter(self._has_news, self.positions))
        # The next time another one is asked first.
        position, incarnation = self.positions.pop(number)
        records = self.world.partitions[number].records
        if position < records.start:
            self.world.lose_position(self, number, position)
            return []
        most = 1 + self.world.draw(8)
        found, next_offset = records.read(position, records.stable_end, most=most)
        self.positions[number] = (next_offset, incarnation)
        now_ms = self.asked[number] = self.clock.now_ms()
        # A fetch that brings nothing is asked anew after a while.
        asked_at_ms = max(asked_at_ms, now_ms - _FETCH_WAIT_MS)
        head = Head(asked_at_ms - GRACE_MS, self.high_watermark(records))
        if found:
            offsets = [it.offset for it in found]
            self.world.say(self.name, f"[{number}] fetches {offsets}, end {head.high_watermark}")
        batch = Batch(number, incarnation, position, next_offset, found, now_ms, head)
        return self._in_pieces(batch, self.world.draw(len(found)) if found else 0)

    def _in_pieces(self, batch, cut):
        """Hand on what one fetch brought in two: only the last is all that the broker had."""
        if not cut:
            return [batch]
        records, middle = batch.records, batch.records[cut].offset
        return [
            replace(batch, next_offset=middle, records=records[:cut], head=None),
            replace(batch, first_offset=middle, records=records[cut:]),
        ]

    def high_watermark(self, records):
        return records.high_watermark

    # What the partitions ask of their process.

    def _make(self, number):
        world = self.world
        broker = SimulatedPartitionBroker(self, world.partitions[number], self)
        return Partition(number, broker, world.config, self.clock, NoMetrics())
