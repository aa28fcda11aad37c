"""Producers that speak all the time and outlive the brokers' faults.

A producer that fails is thrown away, with whatever was under way, and replaced. What became of that
need not be known: the oracle compares logs, not intentions.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from processor.kafka.connection import NO_ANSWER
from tests.chaos.shapes import Speech
from tests.e2e.producing import LARGEST_REQUEST, Line

_PLAIN: Final = ("a", "b")
_TURN_S: Final = 0.1
_LINES_A_TURN: Final = 4
_PATIENCE_S: Final = 15.0
_TRANSACTION_TIMEOUT_MS: Final = 20_000
_FATES: Final = {"committed": 6, "aborted": 3, "left open": 1}


class Traffic:
    """Two idempotent producers and a transactional one, which aborts and vanishes at times.

    Args:
        bootstrap: The brokers' address.
        topic: Where they write.
        seed: What they say, and the fates of the transactions.
        partitions: Of the topic.

    Attributes:
        counts: Lines acknowledged, failures survived, transactions by their fate.
    """

    def __init__(self, bootstrap: str, topic: str, seed: int, *, partitions: int) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._fates = random.Random(f"fates {seed}")  # noqa: S311 - nothing secret
        self._speeches = [Speech(name, seed, partitions=partitions) for name in (*_PLAIN, "t")]
        self.counts: Counter[str] = Counter()

    async def flow(self, seconds: float) -> None:
        """Speak for so long."""
        *plain, transactional = self._speeches
        end = asyncio.get_running_loop().time() + seconds
        async with asyncio.TaskGroup() as tasks:
            for speech in plain:
                tasks.create_task(self._until(end, self._speak, speech))
            tasks.create_task(self._until(end, self._speak_in_transactions, transactional))

    async def end_sessions(self) -> None:
        """End every session; nothing is broken any more."""
        async with _client(self._bootstrap, enable_idempotence=True) as client:
            for speech in self._speeches:
                await self._send(client, speech.ends())

    async def _until(self, end: float, speak: Callable[..., Any], speech: Speech) -> None:
        now = asyncio.get_running_loop().time
        started_at = now()
        while now() < end:
            try:
                await speak(speech, started_at, end)
            except (*NO_ANSWER, KafkaError) as error:
                self.counts[f"failed: {type(error).__name__}"] += 1
                await asyncio.sleep(_TURN_S)

    async def _speak(self, speech: Speech, started_at: float, end: float) -> None:
        now = asyncio.get_running_loop().time
        async with _client(self._bootstrap, enable_idempotence=True) as client:
            while now() < end:
                await self._send(client, speech.lines(now() - started_at, _LINES_A_TURN))
                await asyncio.sleep(_TURN_S)

    async def _speak_in_transactions(self, speech: Speech, started_at: float, end: float) -> None:
        now = asyncio.get_running_loop().time
        how = {"transactional_id": self._topic, "transaction_timeout_ms": _TRANSACTION_TIMEOUT_MS}
        async with _client(self._bootstrap, **how) as client:
            while now() < end:
                fate = self._fates.choices(list(_FATES), weights=list(_FATES.values()))[0]
                async with asyncio.timeout(_PATIENCE_S):
                    await client.begin_transaction()
                    for _ in range(self._fates.randrange(1, 8)):
                        lines = speech.lines(now() - started_at, _LINES_A_TURN)
                        await self._send(client, lines)
                        await asyncio.sleep(_TURN_S)
                    if fate == "committed":
                        await client.commit_transaction()
                    elif fate == "aborted":
                        await client.abort_transaction()
                self.counts[f"transactions {fate}"] += 1
                if fate == "left open":
                    return  # the next client of the same id aborts it

    async def _send(self, client: AIOKafkaProducer, lines: Sequence[Line]) -> None:
        async with asyncio.timeout(_PATIENCE_S):
            sent = [
                await client.send(self._topic, line.value, line.key, line.partition)
                for line in lines
            ]
            await asyncio.gather(*sent)
        self.counts["lines"] += len(lines)


@asynccontextmanager
async def _client(bootstrap: str, **how: Any) -> AsyncIterator[AIOKafkaProducer]:
    """Yield a started producer, and cut it off in the end: its ``stop`` may wait for ever."""
    client = AIOKafkaProducer(
        bootstrap_servers=bootstrap, max_request_size=LARGEST_REQUEST, linger_ms=2, **how
    )
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await client.start()
        yield client
    finally:
        client._closed = True  # noqa: SLF001 - what stop() does after its flush
        ending = [asyncio.ensure_future(client.client.close())]
        sender = client._sender.sender_task  # noqa: SLF001
        if sender is not None:
            sender.cancel()
            ending.append(sender)
        await asyncio.wait(ending, timeout=2)
