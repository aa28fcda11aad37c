"""``PartitionBroker`` over the simulated broker, every call cut into single requests."""

import asyncio
from functools import partial

from processor.core.errors import FencedError, StateError
from processor.protocol.port import Survey
from tests.simulation.broker import CHANGELOG, CHUNKS, DEAD_LETTERS, OFFSETS, AgainError

#: As in ``processor/kafka/reading.py``.
HANGING_S = 70.0
_POLL_S = 0.05
_BACK_OFF_S = 0.1


class Producer:
    """One opening's producer; without an epoch until it has started."""

    epoch = None


class SimulatedPartitionBroker:
    """One partition's side of the simulated broker, for one process.

    Args:
        process: Who asks.
        partition: The ``SimulatedPartition`` asked.
        member: What the group knows the process as: ``seek``, ``is_member``.
    """

    def __init__(self, process, partition, member):
        self.process = process
        self.partition = partition
        self.member = member
        self.transactional_id = f"app-records-{partition.number}"
        self.producer = None

    async def fence(self):
        await self.discard()
        name, partition = self.transactional_id, self.partition
        # As the real one does: what is cut off while it starts stays cut off.
        producer = self.producer = Producer()
        producer.epoch = await self._until_resolved("fence", lambda: partition.init_producer(name))

    async def read_changelog(self, taker):
        end, position = await self._ask("end of changelog", self.changelog_end), 0
        now = asyncio.get_running_loop().time
        waited_from = now()
        while True:
            read = partial(self.read_entries, position, end)
            found, position = await self._ask(f"changelog to {end}", read)
            taker.take(found)
            if position >= end:
                return
            if now() - waited_from > HANGING_S:
                message = f"a transaction hangs at {position}, before {end}"
                raise StateError(message)
            await asyncio.sleep(_POLL_S)

    def changelog_end(self):
        return self.partition.logs[CHANGELOG].high_watermark

    def read_entries(self, position, end):
        changelog = self.partition.logs[CHANGELOG]
        return changelog.read(position, min(end, changelog.stable_end))

    async def survey(self, offsets):
        count, start, end, timestamps = await self._ask("survey", lambda: self._look(offsets))
        partition, world = self.partition, self.process.world
        committed = await self._ask("offset", lambda: partition.committed_offset(world.now))
        return Survey(count, start, end, committed, timestamps)

    async def seek(self, offset, incarnation):
        number = self.partition.number
        await self._ask(f"seek to {offset}", lambda: self.member.seek(number, offset, incarnation))

    async def commit(self, transaction):
        producer, partition, name = self.producer, self.partition, self.transactional_id
        if producer is None:
            message = "no producer to commit with"
            raise FencedError(message)
        epoch = producer.epoch
        parts = (
            (CHUNKS, transaction.output),
            (CHANGELOG, list(transaction.entries.items())),
            (DEAD_LETTERS, transaction.dead_letters),
        )
        self._say_what(transaction)
        results = await asyncio.gather(
            *(self._send(epoch, topic, values) for topic, values in parts if values),
            return_exceptions=True,
        )
        self.raise_refused(results)
        await self._add(epoch, OFFSETS)
        next_offset = transaction.next_offset
        await self._write(
            f"offset {next_offset}", lambda: partition.commit_offset(name, epoch, next_offset)
        )
        await self._write("end of transaction", lambda: partition.end(name, epoch), is_commit=True)

    def raise_refused(self, results):
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def owns(self):
        return await self._ask("member?", self.member.is_member)

    async def discard(self):
        producer, self.producer = self.producer, None
        if producer is not None:
            await self._ask("discard", lambda: None, is_local=True)

    async def _send(self, epoch, topic, values):
        name, partition = self.transactional_id, self.partition
        await self._add(epoch, topic)
        await self._write(topic, lambda: partition.produce(name, epoch, topic, values))

    async def _add(self, epoch, topic):
        name, partition = self.transactional_id, self.partition
        await self._until_resolved(
            f"add {topic}", lambda: partition.add_topic(name, epoch, topic), is_bounded=True
        )

    async def _until_resolved(self, name, effect, **traits):
        while True:
            try:
                return await self._ask(name, effect, is_write=True, **traits)
            except AgainError:
                await asyncio.sleep(_BACK_OFF_S)

    def _write(self, name, effect, **traits):
        return self._ask(name, effect, is_write=True, is_bounded=True, **traits)

    def _ask(self, name, effect, **traits):
        return self.process.ask(f"[{self.partition.number}] {name}", effect, **traits)

    def _look(self, offsets):
        records = self.partition.records
        timestamps = {}
        for offset in offsets:
            if records.start <= offset < records.stable_end:
                entry = records.entries[offset]
                is_there = entry.is_committed and entry.value is not None
                timestamps[offset] = entry.value.timestamp if is_there else None
        count = len(self.process.world.partitions)
        return count, records.start, records.stable_end, timestamps

    def _say_what(self, transaction):
        world = self.process.world
        if world.trace is not None:
            world.say(self.process.name, f"[{self.partition.number}] commits", told(transaction))


def told(transaction):
    """Return what a transaction holds, for a trace."""
    from tests.simulation.oracle import read_chunk, read_entry  # noqa: PLC0415 - only for a trace

    chunks = []
    for message in transaction.output:
        chunk = read_chunk(message.value)
        chunks.append(f"{chunk.session}/{chunk.t} {chunk.flush} {chunk.offsets}")
    entries = {key.decode(): read_entry(key, value) for key, value in transaction.entries.items()}
    return f"chunks {chunks} dead letters {len(transaction.dead_letters)} entries {entries}"
