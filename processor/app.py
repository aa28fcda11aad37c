"""Builds the Faust app of a worker: topics, table, agent. No handling of records.

``faust -A processor.app worker`` finds ``app`` here, made from the environment when asked for.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from processor.agents.chunker import chunker
from processor.core.errors import ConfigError
from processor.counters import counter_named
from processor.kafka.flow import chunking
from processor.kafka.table import SessionTable
from processor.kafka.topic_checks import RETENTION_SHARE
from processor.kafka.topics import check_topics, create_topics
from processor.partitioned_app import PartitionedApp
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.dead_letter_limit import DeadLetterLimit
from processor.protocol.tracing import PartitionTracing
from processor.settings import Settings
from processor.settings_loading import load_settings


class ChunkerApp(PartitionedApp):
    """The Faust app of one worker: chunks of records."""

    def __init__(self, settings: Settings) -> None:
        self._config = replace(chunker_config(settings), tracing=_tracing(settings))
        super().__init__(settings, chunking(settings))
        self.read_batches(chunker(self.partitions), "processor.agents.chunker")
        self.tables.add(SessionTable(self, name="sessions"))

    @property
    def job(self) -> ChunkerConfig:
        """What its partitions are opened for."""
        return self._config

    async def create_topics(self) -> list[str]:
        """Create the topics that are missing; see ``PartitionedApp.create_topics``."""
        return await create_topics(self.settings)

    async def check_topics(self) -> None:
        """Check the topics; see ``PartitionedApp.check_topics``."""
        records = await check_topics(self.settings)
        if records.retention_ms > 0:
            self._config = replace(
                self._config, max_replay_ms=records.retention_ms // RETENTION_SHARE
            )


def create_app(settings: Settings) -> ChunkerApp:
    """Return the app that chunks ``settings.records_topic``.

    Raises:
        ConfigError: The settings, or the installed versions, don't allow one.
    """
    return ChunkerApp(settings)


def chunker_config(settings: Settings) -> ChunkerConfig:
    """Return what the settings say about chunking."""
    return ChunkerConfig(
        topic=settings.records_topic,
        policy=settings.chunk_policy,
        counter=counter_named(settings.token_counter),
        max_replay_records=settings.max_replay_records,
        start_at_end=settings.auto_offset_reset == "latest",
        accept_policy_change=settings.accept_policy_change,
        dead_letter_limit=DeadLetterLimit(
            settings.max_dead_letter_ratio, settings.max_consecutive_dead_letters
        ),
    )


def _tracing(settings: Settings) -> Callable[[int], PartitionTracing] | None:
    if not settings.tracing:
        return None
    try:
        # Here, since the packages are an extra.
        from processor.tracing import chunk_tracer  # noqa: PLC0415
    except ImportError as error:
        message = "PROCESSOR_TRACING needs packages: pip install 'poimen-processor[otel]'"
        raise ConfigError(message) from error
    return chunk_tracer(settings.app_id, settings.records_topic).partition


def __getattr__(name: str) -> Any:  # noqa: ANN401 - Python's signature
    if name == "app":
        app = globals()["app"] = create_app(load_settings())
        return app
    raise AttributeError(name)
