"""Faust's plug points: one message per fetched batch, our seeks, no commits of its own.

Faust makes four tasks for every record (1.3k to 11k records per CPU-second). Here one message
carries a whole batch, so that what Faust does per message costs 4% of the CPU. Offsets travel
only in our transactions, so Faust's bookkeeping of acknowledged offsets has nothing to do.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, ClassVar, Final, Protocol

from aiokafka import TopicPartition
from aiokafka.errors import ConsumerStoppedError, KafkaError
from faust.transport.drivers import aiokafka as faust_aiokafka
from faust.types import TP
from faust.types.tuples import ConsumerMessage
from mode import Service
from mode.utils.futures import maybe_async

from processor.clock import Clock
from processor.core.errors import ProcessorError, StateError, UnreachableError
from processor.kafka.connection import NO_ANSWER, broker_errors
from processor.kafka.consumer_settings import consumer_settings, fetch_pace_s
from processor.kafka.fetching import Asking, BatchConsumer, BatchFetcher
from processor.kafka.flow import Flow
from processor.kafka.refusals import why_not_fetched, why_refused
from processor.kafka.static_member import StaticMember
from processor.protocol.partitions import Partitions
from processor.protocol.port import Batch
from processor.settings import Settings

_MEMBERSHIP_INTERVAL_S: Final = 1.0
log: Final = logging.getLogger(__name__)


class WorkerApp(Protocol):
    """What Faust's services here ask of the app that they belong to."""

    settings: Settings
    flow: Flow
    clock: Clock
    partitions: Partitions
    consumer: Any
    flow_control: Any
    consumer_generation_id: int
    rebalancing_count: int

    def end(self, error: ProcessorError) -> None:
        """End the process because of ``error``."""


class _InLoop:
    """Stands where Faust starts a thread, and runs its service in our own event loop."""

    def __init__(self, service: "ConsumerThread") -> None:
        self._service = service

    def start(self) -> None:
        self._serving = asyncio.ensure_future(self._serve())

    async def _serve(self) -> None:
        try:
            await self._service._serve()  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 - as Faust's own thread does
            log.warning("the consumer ended with an error", extra={"error": repr(error)})
            # Else whoever stops it would wait for that for ever.
            self._service.set_shutdown()

    def stop(self) -> None:
        """Do nothing: the service has stopped by itself when this is called."""


class ConsumerThread(faust_aiokafka.AIOKafkaConsumerThread):
    """The group's member. Faust gives it a thread and a loop of its own; here it has ours.

    It is the more honest way: a worker whose loop is blocked sends no heartbeats either. And Faust
    changes what the thread reads (``Set changed size during iteration`` ended a worker).
    """

    app: WorkerApp  # type: ignore[assignment]  # Faust's AppT knows nothing of ours
    consumer: "Consumer"

    def _create_worker_consumer(self, *_: object) -> BatchConsumer:
        settings = self.app.settings
        asking = Asking(
            self.app.clock,
            grace_ms=round(settings.clock_grace_s * 1000),
            pace_s=fetch_pace_s(settings),
        )
        arguments = consumer_settings(settings, self.app.flow.group)
        if settings.group_instance_id is None:
            return BatchConsumer(asking=asking, **arguments)
        return StaticMember(on_fenced=self.app.end, asking=asking, **arguments)

    async def on_start(self) -> None:
        """Connect and join.

        Raises:
            ConfigError: As ``broker_errors`` says.
            UnreachableError: No broker answers.
        """
        with broker_errors(self.app.settings):
            await super().on_start()

    def on_crash(self, msg: str, *fmt: Any, **arguments: Any) -> None:  # noqa: ANN401
        """Print what nobody expected; an error of ours is told by whoever ends the process."""
        if not any(isinstance(it, ProcessorError) for it in fmt):
            super().on_crash(msg, *fmt, **arguments)

    async def call_thread(self, fun: Callable[..., Any], *args: Any, **arguments: Any) -> Any:  # noqa: ANN401
        """Call it: there is no other thread."""
        return await maybe_async(fun(*args, **arguments))

    async def _gather_remaining_tasks(self) -> None:
        """Cancel none: the loop's other tasks are not this service's."""

    async def _fetch_records(
        self,
        consumer: BatchConsumer,
        active_partitions: set[TP],
        timeout: float | None = None,  # noqa: ASYNC109 - Faust's signature
        max_records: int | None = None,  # noqa: ARG002
    ) -> Mapping[TP, list[Batch]]:
        """Return one batch of each partition that has any."""
        if not self.consumer.flow_active:
            return {}
        fetcher = consumer.fetcher
        if consumer._closed or fetcher._closed:  # noqa: SLF001
            raise ConsumerStoppedError
        # A copy: Faust changes the set while we wait.
        partitions = frozenset(active_partitions)
        with fetcher._subscriptions.fetch_context():  # noqa: SLF001
            batches = fetcher.take(partitions)
            if not batches:
                await fetcher.wait(timeout or 0.0)
                # A partition that has been sought since the flow stopped is not sought again
                # before it goes on: what is taken now and then dropped would be lost to it.
                batches = fetcher.take(partitions) if self.consumer.flow_active else []
        topic = self.app.flow.input_topic
        return {TP(topic, it.partition): [it] for it in batches}


class Consumer(faust_aiokafka.Consumer):
    """Faust's consumer: batches in place of messages, positions and offsets ours alone."""

    app: WorkerApp  # type: ignore[assignment]  # as above

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(
            self, loop=self.loop, thread_loop=self.loop, Worker=_InLoop, beacon=self.beacon
        )

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[TP, ConsumerMessage]]:  # noqa: ASYNC109
        """Yield one message per fetched batch; what is left over a rebalance is dropped.

        Dropping is safe: nothing is taken while the flow is stopped, every partition is sought
        to its own position before it goes on, and batches of an older incarnation are refused.
        """
        try:
            batches, _ = await self._wait_next_records(timeout)
        except KafkaError as error:
            lost = why_not_fetched(self.app.settings, self.app.flow.input_topic, error)
            # Faust ends the process too, but not with the exit code of this.
            self.app.end(lost)
            raise lost from error
        generation_id = self.app.consumer_generation_id
        for partition, (batch,) in (batches or {}).items():
            is_current = self.app.consumer_generation_id == generation_id
            if self.should_stop or not self.flow_active or not is_current:
                return
            yield partition, self._message(partition, batch, generation_id)

    async def perform_seek(self) -> None:
        """Do nothing: opening or resuming a partition has sought it."""

    async def _commit(self, *_: object) -> bool:
        return True

    async def _add_gap(self, *_: object) -> None:
        pass

    async def seek_stamped(self, partition: TopicPartition, offset: int, incarnation: int) -> None:
        """Seek, in one step with the stamp.

        Raises:
            UnreachableError: The partition is not assigned.
        """
        try:
            self._raw().fetcher.seek(partition, offset, incarnation)
        except (KafkaError, AssertionError) as error:
            message = f"{partition.topic}[{partition.partition}]: can't seek: {error!r}"
            raise UnreachableError(message) from error

    async def is_member(self) -> bool:
        """Send a heartbeat of our generation and return whether the coordinator took it."""
        coordinator = self._raw()._coordinator  # noqa: SLF001
        try:
            is_taken: bool = await coordinator._do_heartbeat()  # noqa: SLF001
        except (*NO_ANSWER, KafkaError) as error:
            message = f"group {self.app.flow.group}: {error!r}"
            raise UnreachableError(message) from error
        return is_taken and not coordinator.need_rejoin(self._raw()._subscription.subscription)  # noqa: SLF001

    def answered_s_ago(self) -> float | None:
        """Return how long ago a broker last answered; ``None`` when none ever has."""
        consumer: BatchConsumer | None = self._thread._consumer  # noqa: SLF001
        return None if consumer is None else consumer.answered_s_ago

    def stable_end(self, partition: int) -> int | None:
        """Return the last stable offset that was told last; ``None`` when none was."""
        fetcher = getattr(self._thread._consumer, "_fetcher", None)  # noqa: SLF001
        if not isinstance(fetcher, BatchFetcher):
            return None  # it is just starting
        return fetcher.stable_end(TopicPartition(self.app.flow.input_topic, partition))

    @Service.task
    async def _watch_membership(self) -> None:
        """Take up what the coordinator reports: until then aiokafka stays out of the group."""
        while not self.should_stop:
            await self.sleep(_MEMBERSHIP_INTERVAL_S)
            self.check_membership()

    def check_membership(self) -> None:
        """End the process if the coordinator refuses us for good, or has died."""
        coordinator = self._raw()._coordinator  # noqa: SLF001
        if coordinator is None:
            return  # not started yet: it waits for a broker's answer
        try:
            coordinator.check_errors()
        except KafkaError as error:
            if coordinator._coordination_task.done():  # noqa: SLF001
                # Nobody would ever join again, while heartbeats and fetches might go on.
                message = f"group {self.app.flow.group}: {error}; start again, report this"
                self.app.end(StateError(message))
            else:
                self._take_refusal(error)

    def _take_refusal(self, error: KafkaError) -> None:
        refusal = why_refused(self.app.settings, self.app.flow.group, error)
        if refusal is not None:
            self.app.end(refusal)
        else:
            log.warning("the group refused us, joining again", extra={"error": repr(error)})

    def _raw(self) -> BatchConsumer:
        consumer: BatchConsumer = self._thread._ensure_consumer()  # noqa: SLF001
        return consumer

    def _message(self, partition: TP, batch: Batch, generation_id: int) -> ConsumerMessage:
        # The offset is always the same: Faust drops messages whose offset is below the last
        # one it saw, and after a reopening ours are.
        return ConsumerMessage(
            partition.topic,
            partition.partition,
            0,
            batch.arrived_at_ms / 1000,
            0,
            None,
            b"",
            batch,  # type: ignore[arg-type]  # Faust hands the value on as it is
            None,
            tp=partition,
            generation_id=generation_id,
        )


class Transport(faust_aiokafka.Transport):
    """Faust's transport with our consumer."""

    Consumer: ClassVar[type[Consumer]] = Consumer
