"""The frame of a Faust app that reads one topic, partition by partition, exactly once."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

import faust
from mode import CrashingSupervisor

from processor.clock import SystemClock
from processor.core.errors import ProcessorError
from processor.kafka import record_reader, stream_reader
from processor.kafka.broker import GroupConsumer, KafkaPartitionBroker
from processor.kafka.connection import broker_errors, client_settings
from processor.kafka.flow import Flow
from processor.kafka.granted import check_rights
from processor.kafka.plug_points import check_plug_points
from processor.kafka.reading import ends_of
from processor.kafka.recovery import PartitionTables, group_log
from processor.kafka.rights import flow_rights
from processor.kafka.transport import Consumer, Transport
from processor.ops.counting import CountingMetrics
from processor.ops.memory import tune_memory
from processor.ops.panel import Panel
from processor.ops.stacks import exit_stuck
from processor.ops.vitals import VitalsReader
from processor.ops.watchdog import LoopGuard, Watchdog
from processor.protocol.job import Job
from processor.protocol.partition import Partition
from processor.protocol.partitions import Partitions
from processor.settings import Settings

#: Bounds of what a rebalance and a shutdown may wait for a commit.
_REVOKE_TIMEOUT_S: Final = 5.0
_STOP_TIMEOUT_S: Final = 10.0
#: Batches that wait between fetch and agent.
_BUFFERED_BATCHES: Final = 8


class _OurClientsAlone(faust.app.BootStrategy):
    """Starts all but Faust's producer, which sends nothing here and knows nothing of our login."""

    enable_kafka_producer = False


class PartitionedApp(faust.App):
    """The Faust app of one process.

    Args:
        settings: What it runs with.
        flow: What it reads and writes, and as whom.

    Attributes:
        settings: What it runs with.
        flow: What it reads and writes, and as whom.
        clock: Its time.
        partitions: The partitions that the group has given to it.
        fatal: Why the process has to end, once it has.

    Raises:
        ConfigError: The installed versions don't allow one.
    """

    BootStrategy = _OurClientsAlone

    def __init__(self, settings: Settings, flow: Flow) -> None:
        check_plug_points()
        stream_reader.install()
        record_reader.install()
        self.settings = settings
        self.flow = flow
        self.clock = SystemClock()
        self.fatal: ProcessorError | None = None
        self._watchdog: Watchdog | None = None
        metrics = CountingMetrics()

        def make(number: int) -> Partition:
            consumer = cast("GroupConsumer", self.consumer)  # our transport makes it
            broker = KafkaPartitionBroker(settings, self.flow, number, consumer)
            return Partition(number, broker, self.job, self.clock, metrics)

        self.partitions = Partitions(make, settings.commit_interval_s, self.end, metrics)
        vitals = VitalsReader(
            self.partitions,
            self.clock,
            member=lambda: cast("Consumer | None", self._consumer),
            stuck=lambda: self._watchdog.stuck if self._watchdog else (),
        )
        self._panel = Panel(settings, flow, metrics, vitals.read, self.partitions)
        super().__init__(flow.group, **_faust_settings(settings))
        self.on_partitions_revoked.connect(self._hold)

    @property
    def job(self) -> Job[Any]:
        """What its partitions are opened for."""
        raise NotImplementedError

    async def create_topics(self) -> list[str]:
        """Create the topics that are missing and return their names.

        Raises:
            ConfigError: The broker refuses one.
            UnreachableError: No broker answers.
        """
        raise NotImplementedError

    async def check_topics(self) -> None:
        """Check all topics, and note what they say about the job.

        Raises:
            ConfigError: Something is wrong with them; the message says what to run.
            UnreachableError: No broker answers.
        """
        raise NotImplementedError

    def read_batches(self, agent: Callable[..., Any], name: str) -> None:
        """Have ``agent`` read what is fetched of the input."""
        # Offsets travel in our transactions: Faust has nothing to acknowledge.
        topic = self.topic(
            self.flow.input_topic, key_serializer="raw", value_serializer="raw", acks=False
        )
        self.agent(topic, name=name)(agent)

    def end(self, error: ProcessorError) -> None:
        """End the process because of ``error``; the first one counts."""
        if self.fatal is None:
            self.fatal = error
            self.add_future(self.crash(error))

    def _new_transport(self) -> Transport:
        return Transport(self.conf.broker_consumer, self)

    def _create_directories(self) -> None:
        """Make none: nothing is kept on disk."""

    async def start(self) -> None:
        """Start everything.

        Raises:
            ConfigError: See ``on_first_start``; or health and metrics can't be served.
            UnreachableError: No broker answers, to us or to one of Faust's own clients.
        """
        try:
            await self._panel.start()
            with broker_errors(self.settings):
                await super().start()
        except ProcessorError as error:
            self.fatal = self.fatal or error
            raise

    async def on_first_start(self) -> None:
        """Create the topics that are missing, if allowed, and check all, and our rights.

        Raises:
            ConfigError: Something is wrong with them, or a right is missing; the message says what
                to run.
            UnreachableError: No broker answers.
        """
        settings, rights = self.settings, flow_rights(self.flow)
        # Topics that are hidden from us look as if they were missing.
        await check_rights(settings, rights)
        if settings.create_topics and await self.create_topics():
            # Of topics that were not there nobody could tell.
            await check_rights(settings, rights)
        await self.check_topics()
        await super().on_first_start()

    async def on_start(self) -> None:
        """Start, committing from now on."""
        tune_memory()
        await super().on_start()
        self.add_future(self.partitions.commit_forever())
        self._watch()

    def _watch(self) -> None:
        """Have the process end rather than hang."""
        settings, loop = self.settings, asyncio.get_running_loop()
        if not settings.stuck_after_s:
            return
        client = client_settings(settings)
        self._watchdog = Watchdog(
            self.partitions,
            partial(ends_of, client, self.flow.input_topic),
            settings.stuck_after_s,
            partial(exit_stuck, loop=loop),
        )
        guard = LoopGuard(settings.stuck_after_s, partial(exit_stuck, loop=loop))
        self.add_future(self._watchdog.watch_forever())
        self.add_future(guard.tick_forever())

    async def on_stop(self) -> None:
        """Commit what is staged and stop; Faust does not call the revoke hook on SIGTERM."""
        if self._consumer is not None:
            self._consumer.stop_flow()
        await self.partitions.close(_STOP_TIMEOUT_S)
        await super().on_stop()
        await self._panel.stop()

    async def _hold(self, *_: object, **__: object) -> None:
        group_log.info("partitions revoked", extra={"topic": self.flow.input_topic})
        await self.partitions.revoke(_REVOKE_TIMEOUT_S)


def _faust_settings(settings: Settings) -> dict[str, Any]:
    servers = settings.bootstrap_servers.split(",")
    return {
        "broker": [f"kafka://{server.strip()}" for server in servers],
        "store": "memory://",
        "TableManager": PartitionTables,
        # An error in the agent ends the process; Faust's default would skip the batch.
        "agent_supervisor": CrashingSupervisor,
        "stream_buffer_maxsize": _BUFFERED_BATCHES,
        # Nothing of Faust's own commits, declares topics, serves pages or elects leaders.
        "broker_commit_interval": 3600.0,
        "broker_session_timeout": settings.session_timeout_s,
        "topic_allow_declare": False,
        "topic_disable_leader": True,
        "table_standby_replicas": 0,
        "stream_wait_empty": False,
        "stream_recovery_delay": 0.0,
        "web_enabled": False,
    }
