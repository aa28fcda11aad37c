"""Builds the Faust app: topics, table, agent. No handling of records.

``faust -A processor.app worker`` finds ``app`` here, made from the environment when asked for.
"""

import asyncio
import gc
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

import faust
from mode import CrashingSupervisor

from processor.agents.chunker import chunker
from processor.clock import SystemClock
from processor.core.errors import ProcessorError
from processor.core.policy import ChunkPolicy, OrIdle
from processor.counters import counter_named
from processor.kafka import stream_reader
from processor.kafka.broker import GroupConsumer, KafkaPartitionBroker
from processor.kafka.connection import broker_errors, client_settings
from processor.kafka.granted import check_rights
from processor.kafka.plug_points import check_plug_points
from processor.kafka.reading import ends_of
from processor.kafka.recovery import PartitionTables, group_log
from processor.kafka.rights import worker_rights
from processor.kafka.table import SessionTable
from processor.kafka.topics import check_topics, create_topics
from processor.kafka.transport import Transport
from processor.metrics import Metrics, NoMetrics
from processor.ops.stacks import exit_stuck
from processor.ops.watchdog import LoopGuard, Watchdog
from processor.protocol.partition import Partition
from processor.protocol.partitions import Partitions
from processor.protocol.state import ChunkerConfig
from processor.settings import Settings, require_app_id
from processor.settings_loading import load_settings

#: Bounds of what a rebalance and a shutdown may wait for a commit.
_REVOKE_TIMEOUT_S: Final = 5.0
_STOP_TIMEOUT_S: Final = 10.0
#: Batches that wait between fetch and chunker.
_BUFFERED_BATCHES: Final = 8
#: An open record is written to the changelog before a quarter of its topic's retention is over.
_RETENTION_SHARE: Final = 4
#: Objects made before the garbage collector looks for cycles; Python's default is 700.
_COLLECT_AFTER: Final = 50_000


class _OurClientsAlone(faust.app.BootStrategy):
    """Starts all but Faust's producer, which sends nothing here and knows nothing of our login."""

    enable_kafka_producer = False


class ChunkerApp(faust.App):
    """The Faust app of one worker.

    Attributes:
        settings: What it runs with.
        clock: Its time.
        partitions: The partitions that the group has given to it.
        fatal: Why the process has to end, once it has.
    """

    BootStrategy = _OurClientsAlone

    def __init__(self, settings: Settings, metrics: Metrics) -> None:
        self.settings = settings
        self.clock = SystemClock()
        self.fatal: ProcessorError | None = None
        self._config = chunker_config(settings)

        def make(number: int) -> Partition:
            consumer = cast("GroupConsumer", self.consumer)  # our transport makes it
            broker = KafkaPartitionBroker(settings, number, consumer)
            return Partition(number, broker, self._config, self.clock, metrics)

        self.partitions = Partitions(make, settings.commit_interval_s, self.end)
        super().__init__(settings.app_id, **_faust_settings(settings))

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
            ConfigError: See ``on_first_start``.
            UnreachableError: No broker answers, to us or to one of Faust's own clients.
        """
        try:
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
        # Topics that are hidden from us look as if they were missing.
        await check_rights(self.settings, worker_rights(self.settings))
        if self.settings.create_topics and await create_topics(self.settings):
            # Of topics that were not there nobody could tell.
            await check_rights(self.settings, worker_rights(self.settings))
        records = await check_topics(self.settings)
        if records.retention_ms > 0:
            self._config = replace(
                self._config, max_replay_ms=records.retention_ms // _RETENTION_SHARE
            )
        await super().on_first_start()

    async def on_start(self) -> None:
        """Start, committing from now on."""
        _tune_garbage_collection()
        await super().on_start()
        self.add_future(self.partitions.commit_forever())
        self._watch()

    def _watch(self) -> None:
        """Have the process end rather than hang."""
        settings, loop = self.settings, asyncio.get_running_loop()
        if not settings.stuck_after_s:
            return
        client = client_settings(settings)
        watchdog = Watchdog(
            self.partitions,
            partial(ends_of, client, settings.records_topic),
            settings.stuck_after_s,
            partial(exit_stuck, loop=loop),
        )
        guard = LoopGuard(settings.stuck_after_s, partial(exit_stuck, loop=loop))
        self.add_future(watchdog.watch_forever())
        self.add_future(guard.tick_forever())

    async def on_stop(self) -> None:
        """Commit what is staged and stop; Faust does not call the revoke hook on SIGTERM."""
        if self._consumer is not None:
            self._consumer.stop_flow()
        await self.partitions.close(_STOP_TIMEOUT_S)
        await super().on_stop()


def create_app(settings: Settings, metrics: Metrics | None = None) -> ChunkerApp:
    """Return the app that chunks ``settings.records_topic``.

    Raises:
        ConfigError: The settings, or the installed versions, don't allow one.
    """
    check_plug_points()
    stream_reader.install()
    app = ChunkerApp(require_app_id(settings), metrics or NoMetrics())
    records = app.topic(
        settings.records_topic,
        key_serializer="raw",
        value_serializer="raw",
        # Offsets travel in our transactions: Faust has nothing to acknowledge.
        acks=False,
    )
    app.agent(records, name="processor.agents.chunker")(chunker(app.partitions))
    app.tables.add(SessionTable(app, name="sessions"))

    @app.on_partitions_revoked.connect
    async def hold(*_: object, **__: object) -> None:
        group_log.info("partitions revoked", extra={"topic": settings.records_topic})
        await app.partitions.revoke(_REVOKE_TIMEOUT_S)

    return app


def chunker_config(settings: Settings) -> ChunkerConfig:
    """Return what the settings say about chunking."""
    policy = ChunkPolicy(
        max_tokens=settings.max_tokens,
        flush=OrIdle(settings.idle_s) if settings.idle_s else None,
        max_age_s=settings.max_age_s,
        max_chunk_bytes=settings.max_chunk_bytes,
        max_chunk_records=settings.max_chunk_records,
    )
    return ChunkerConfig(
        topic=settings.records_topic,
        policy=policy,
        counter=counter_named(settings.token_counter),
        max_replay_records=settings.max_replay_records,
        start_at_end=settings.auto_offset_reset == "latest",
        accept_policy_change=settings.accept_policy_change,
    )


def _tune_garbage_collection() -> None:
    """Collect rarely: a record is four tracked objects, and none of them in a cycle."""
    gc.collect()
    # What is imported by now stays for ever and need not be looked at again.
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 20)


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


def __getattr__(name: str) -> Any:  # noqa: ANN401 - Python's signature
    if name == "app":
        app = globals()["app"] = create_app(load_settings())
        return app
    raise AttributeError(name)
