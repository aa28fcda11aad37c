"""aiokafka's fetcher, handing out what it fetched as batches with their stamps.

Four things differ from the consumer it belongs to. Records come a fetch at a time and as the
client's own raw objects: copying each into a dataclass cost 15% of the worker's CPU. What is taken
is stamped, in the same step of the event loop, with the positions before and after and with the
incarnation of the seek that set them; so no batch can be taken for one of another opening. And of
every answer the end of the log is kept, beside the time at which it was asked for.

And a node is not asked again at once. A broker answers a fetch as soon as there is a record: at a
pace that makes a fetch of every few records, each with a price, for chunks that wait for the next
commit all the same.

Positions come from our seeks alone. Kafka must never choose one: a recreated topic would pass
silently, every record of it lost.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterable
from math import inf
from typing import Any, Final, NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.errors import NoError, for_code
from aiokafka.protocol.fetch import FetchRequest

from processor.clock import Clock
from processor.kafka.fetched import drained, fetched
from processor.protocol.port import Batch, Head

_UNPOSITIONED_WAIT_S: Final = 0.05
#: With the partitions' own bound less than a worker gives itself to stop.
_LEAVE_TIMEOUT_S: Final = 8.0
log = logging.getLogger(__name__)


class Asking(NamedTuple):
    """How records are asked for.

    Attributes:
        clock: Stamps requests and batches.
        grace_ms: Taken off a request's time, for clocks that differ.
        pace_s: A node is asked this long after the last time, at the earliest.
    """

    clock: Clock
    grace_ms: int
    pace_s: float


class BatchFetcher(Fetcher):  # type: ignore[misc]  # aiokafka is untyped
    """A ``Fetcher`` from which batches are taken; all arguments but ``asking`` are aiokafka's."""

    def __init__(self, *args: Any, asking: Asking, **arguments: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **arguments)
        self._clock = asking.clock
        self._incarnations: dict[TopicPartition, int] = {}
        self._heads: dict[TopicPartition, Head] = {}
        self._client: Any = _PacedClient(self._client, self._heads, asking)

    def seek(self, partition: TopicPartition, offset: int, incarnation: int) -> None:
        """Fetch from ``offset`` on and stamp batches with ``incarnation``."""
        self._subscriptions.seek(partition, offset)
        self._incarnations[partition] = incarnation
        self._heads.pop(partition, None)

    def take(self, partitions: Iterable[TopicPartition]) -> list[Batch]:
        """Return what has been fetched for ``partitions``, in order, without waiting.

        A partition whose position passed control records alone, or whose end of the log was
        told again, gives a batch without records.

        Raises:
            KafkaError: A fetch of one of them failed for good.
        """
        return [batch for it in partitions if (batch := self._take_one(it))]

    async def wait(self, timeout_s: float) -> None:
        """Wait until records have been fetched, at most ``timeout_s``."""
        await fetched(self, timeout_s)

    def stable_end(self, partition: TopicPartition) -> int | None:
        """Return the last stable offset that the last fetch told; ``None`` before one has."""
        assignment = (
            self._subscriptions.subscription and self._subscriptions.subscription.assignment
        )
        if assignment is None or partition not in assignment.tps:
            return None
        told: int | None = assignment.state_value(partition).lso
        return told

    def _take_one(self, partition: TopicPartition) -> Batch | None:
        assignment = self._subscriptions.subscription.assignment
        incarnation = self._incarnations.get(partition)
        if assignment is None or partition not in assignment.tps or incarnation is None:
            return None
        state = assignment.state_value(partition)
        if not state.has_valid_position:
            return None
        first_offset = state.position
        records = drained(self, partition)
        head = self._heads.pop(partition, None)
        if state.position == first_offset and head is None:
            return None
        return Batch(
            partition.partition,
            incarnation,
            first_offset,
            state.position,
            records,
            self._clock.now_ms(),
            head,
        )

    async def _proc_fetch_request(self, *request: object) -> bool:
        """Fetch; one that pauses after a failure may be cancelled, as below."""
        with contextlib.suppress(asyncio.CancelledError):
            is_woken: bool = await super()._proc_fetch_request(*request)
            return is_woken
        return False

    async def _update_fetch_positions(self, *_: object) -> bool:
        """Leave a partition without a position alone: a seek is on its way."""
        # aiokafka awaits the tasks that it cancels, and expects none to say so.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(_UNPOSITIONED_WAIT_S)
        return False


class BatchConsumer(AIOKafkaConsumer):  # type: ignore[misc]  # aiokafka is untyped
    """A consumer whose fetcher is a ``BatchFetcher``."""

    _fetcher: Any

    def __init__(self, *topics: str, asking: Asking, **arguments: Any) -> None:  # noqa: ANN401
        super().__init__(*topics, **arguments)
        self._asking = asking
        self._send = self._client.send
        self._client.send = self._send_and_note
        self._answered_at_s: float | None = None

    @property
    def fetcher(self) -> BatchFetcher:
        """The fetcher, once started."""
        fetcher: BatchFetcher = self._fetcher
        return fetcher

    @property
    def answered_s_ago(self) -> float | None:
        """Seconds since a broker last answered anything, heartbeats included; ``None``: never."""
        return None if self._answered_at_s is None else time.monotonic() - self._answered_at_s

    async def _send_and_note(self, *args: Any, **arguments: Any) -> Any:  # noqa: ANN401
        response = await self._send(*args, **arguments)
        self._answered_at_s = time.monotonic()
        return response

    async def stop(self) -> None:
        """Leave the group and close.

        A group answers a join only once all have joined, and aiokafka waits for that before it
        leaves: here not for ever. Then the group notices by the session timeout.
        """
        coordinator = self._coordinator
        if coordinator is not None and not self._closed:
            leaving = asyncio.ensure_future(coordinator.close())
            done, _ = await asyncio.wait([leaving], timeout=_LEAVE_TIMEOUT_S)
            if done:
                await leaving
            else:
                log.warning("the group did not let us go in %.0f s; gone without", _LEAVE_TIMEOUT_S)
                leaving.cancel()  # and with it what it waits for
                await coordinator._stop_heartbeat_task()  # noqa: SLF001
        await super().stop()

    async def start(self) -> None:
        """Start, with our fetcher in the place of the one that aiokafka makes itself."""
        await super().start()
        made: Fetcher = self._fetcher
        await made.close()
        self._fetcher = BatchFetcher(
            made._client,  # noqa: SLF001
            self._subscription,
            fetch_min_bytes=self._fetch_min_bytes,
            fetch_max_bytes=self._fetch_max_bytes,
            fetch_max_wait_ms=self._fetch_max_wait_ms,
            max_partition_fetch_bytes=self._max_partition_fetch_bytes,
            check_crcs=self._check_crcs,
            fetcher_timeout=self._consumer_timeout,
            retry_backoff_ms=self._retry_backoff_ms,
            auto_offset_reset=self._auto_offset_reset,
            isolation_level=self._isolation_level,
            asking=self._asking,
        )


class _PacedClient:
    """A client that asks a node for records at a pace, and keeps when, and where the log ended."""

    def __init__(self, client: Any, heads: dict[TopicPartition, Head], asking: Asking) -> None:  # noqa: ANN401
        self._client = client
        self._heads = heads
        self._asking = asking
        self._asked_at_s: dict[int, float] = {}

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._client, name)

    async def send(self, node_id: int, request: Any, **arguments: Any) -> Any:  # noqa: ANN401
        if not isinstance(request, FetchRequest):
            return await self._client.send(node_id, request, **arguments)
        await self._pause(node_id)
        asked_at_ms = self._asking.clock.now_ms() - self._asking.grace_ms
        response = await self._client.send(node_id, request, **arguments)
        for topic, partitions in response.topics:
            for partition, error_code, high_watermark, *_ in partitions:
                if for_code(error_code) is NoError:
                    head = Head(asked_at_ms, high_watermark)
                    self._heads[TopicPartition(topic, partition)] = head
        return response

    async def _pause(self, node_id: int) -> None:
        now_s = time.monotonic()
        at_s = max(now_s, self._asked_at_s.get(node_id, -inf) + self._asking.pace_s)
        self._asked_at_s[node_id] = at_s
        if at_s > now_s:
            await asyncio.sleep(at_s - now_s)
