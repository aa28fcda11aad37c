"""Builds the Faust app of a router: topics, formats, agent. No handling of telemetry."""

from dataclasses import replace
from typing import Final

from processor.agents.router import router
from processor.formats import format_named
from processor.formats.format import FormatOptions
from processor.kafka.flow import routing, routing_remedies
from processor.kafka.partitioner import partitioner
from processor.kafka.topics import check_route_topics, create_route_topics
from processor.partitioned_app import PartitionedApp
from processor.protocol.routing import RouterConfig
from processor.protocol.stream_readers import AUTO
from processor.settings import Settings, listed

#: What cannot be made smaller, compression makes a little larger.
_MARGIN_BYTES: Final = 1024


class RouterApp(PartitionedApp):
    """The Faust app of one router: records of telemetry."""

    def __init__(self, settings: Settings) -> None:
        self._options = format_options(settings)
        if settings.telemetry_format != AUTO:
            format_named(settings.telemetry_format, self._options, {})
        self._config: RouterConfig | None = None
        super().__init__(settings, routing(settings))
        self.read_batches(router(self.partitions), "processor.agents.router")

    @property
    def job(self) -> RouterConfig:
        """What its partitions are opened for; once the topics are checked."""
        if self._config is None:
            message = "the topics are not checked yet"
            raise AssertionError(message)
        return self._config

    async def create_topics(self) -> list[str]:
        """Create the topics that are missing; see ``PartitionedApp.create_topics``."""
        return await create_route_topics(self.settings)

    async def check_topics(self) -> None:
        """Check the topics; see ``PartitionedApp.check_topics``."""
        settings = self.settings
        facts = await check_route_topics(settings)
        written = (self.flow.output_topic, self.flow.changelog_topic, self.flow.dead_letter_topic)
        self.flow = replace(
            self.flow,
            dead_letter_partitions=facts[settings.dead_letter_topic].partition_count,
            max_batch_bytes=min(facts[it].max_message_bytes for it in written) - _MARGIN_BYTES,
        )
        count = facts[settings.records_topic].partition_count
        self._config = RouterConfig(
            topic=settings.telemetry_topic,
            records_topic=settings.records_topic,
            records_partitions=count,
            partition_of=partitioner(count),
            remedies=routing_remedies(self.flow),
            format=settings.telemetry_format,
            options=self._options,
            start_at_end=settings.auto_offset_reset == "latest",
        )


def create_route_app(settings: Settings) -> RouterApp:
    """Return the app that routes ``settings.telemetry_topic``.

    Raises:
        ConfigError: The settings, or the installed versions, don't allow one.
    """
    return RouterApp(settings)


def format_options(settings: Settings) -> FormatOptions:
    """Return what the settings say about formats.

    Raises:
        ConfigError: A header is not given as ``header=path``.
    """
    return FormatOptions(
        session_fields=listed(settings.session_fields), header_fields=settings.header_paths
    )
