"""The simulated broker keeps the contract; ``tests/e2e/test_contract.py`` asks Apache Kafka."""

import asyncio
from contextlib import asynccontextmanager
from functools import partial

import pytest

from tests.simulation.broker import MAX_MESSAGE_BYTES, SimulatedPartition
from tests.simulation.client import SimulatedPartitionBroker
from tests.simulation.contract import CASES
from tests.simulation.loop import run

LATENCY_S = 0.01


class Side:
    """A simulated partition whose requests are answered after a while, with markers between."""

    limit = MAX_MESSAGE_BYTES
    moments_s = tuple(n * LATENCY_S for n in range(1, 14))
    is_dead = False
    trace = None

    def __init__(self):
        self.partition = SimulatedPartition(0)
        self.partitions = [self.partition]
        self.owner_of_records = None

    @property
    def world(self):
        return self

    @property
    def now(self):
        return asyncio.get_running_loop().time()

    async def ask(self, _name, effect, **_traits):
        await asyncio.sleep(LATENCY_S)
        try:
            return effect()
        finally:
            for name in self.partition.resolving():
                asyncio.get_running_loop().call_later(LATENCY_S, self._write_markers, name)

    def owner(self):
        return SimulatedPartitionBroker(self, self.partition, None)

    async def append(self, value):
        self.partition.append(1, b"key", value, self.owner_of_records)

    @asynccontextmanager
    async def transaction(self, *, commit):
        self.owner_of_records = "producer"
        yield
        self.partition.records.resolve("producer", commit=commit)
        self.owner_of_records = None

    async def read(self, topic):
        await asyncio.sleep(4 * LATENCY_S)
        return [message.value for message in self.partition.logs[topic].committed()]

    async def ends(self, topic):
        await asyncio.sleep(4 * LATENCY_S)
        log = self.partition.logs[topic]
        return log.high_watermark, log.stable_end

    def _write_markers(self, name):
        while name in self.partition.resolving():
            self.partition.write_marker(name, 0)


@pytest.mark.parametrize("case", CASES)
def test_simulated_broker(case):
    run(partial(case, Side())())
