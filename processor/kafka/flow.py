"""What an app reads and writes, by role, and as whom."""

from dataclasses import dataclass

from aiokafka import TopicPartition

from processor.core.errors import ConfigError
from processor.protocol.job import Remedies
from processor.settings import Settings, require_app_id


@dataclass(frozen=True, slots=True)
class Flow:
    """Topics and names of one app.

    Attributes:
        app_id: First part of the transactional ids.
        group: The consumer group.
        input_topic: What is read.
        output_topic: What is written.
        changelog_topic: The state; as many partitions as the input.
        dead_letter_topic: What is set aside.
        max_batch_bytes: Messages share a batch up to this, which every topic written takes.
        dead_letter_partitions: Its number of partitions; 0 where it is that of the input.
        owns_output: Nobody else writes the output: where there is some, there is a state.
    """

    app_id: str
    group: str
    input_topic: str
    output_topic: str
    changelog_topic: str
    dead_letter_topic: str
    max_batch_bytes: int
    dead_letter_partitions: int = 0
    owns_output: bool = True

    @property
    def transactional_prefix(self) -> str:
        """What the ids of all its producers begin with."""
        return transactional_prefix(self.app_id, self.input_topic)

    def transactional_id(self, partition: int) -> str:
        """Return the id of an input partition's producer: always the same, it is the lock."""
        return f"{self.transactional_prefix}{partition}"

    def dead_letters_of(self, partition: int) -> TopicPartition:
        """Return where an input partition's dead letters go."""
        if self.dead_letter_partitions:
            partition %= self.dead_letter_partitions
        return TopicPartition(self.dead_letter_topic, partition)


def transactional_prefix(app_id: str, input_topic: str) -> str:
    """Return what the id of a partition's producer has before the partition's number."""
    return f"{app_id}-{input_topic}-"


def chunking(settings: Settings) -> Flow:
    """Return the flow of ``processor worker``: records to chunks.

    Raises:
        ConfigError: The settings name no app.
    """
    app_id = require_app_id(settings).app_id
    return Flow(
        app_id,
        app_id,
        settings.records_topic,
        settings.chunks_topic,
        settings.changelog_topic,
        settings.dead_letter_topic,
        # A start check holds it below the topics' limits.
        settings.max_chunk_bytes,
    )


def routing(settings: Settings) -> Flow:
    """Return the flow of ``processor route``: telemetry to records; what topics take is to come.

    Raises:
        ConfigError: The settings name no app, or telemetry is a topic that is written.
    """
    app_id = require_app_id(settings).app_id
    written = (
        settings.records_topic,
        settings.dead_letter_topic,
        settings.chunks_topic,
        settings.routes_changelog_topic,
        settings.changelog_topic,
    )
    if settings.telemetry_topic in written:
        message = (
            f"PROCESSOR_TELEMETRY_TOPIC={settings.telemetry_topic} is a topic that this app "
            "writes; telemetry needs one of its own"
        )
        raise ConfigError(message)
    return Flow(
        app_id,
        f"{app_id}-router",
        settings.telemetry_topic,
        settings.records_topic,
        settings.routes_changelog_topic,
        settings.dead_letter_topic,
        max_batch_bytes=0,
        owns_output=False,
    )


def routing_remedies(flow: Flow) -> Remedies:
    """Return what a person can do where a router's state and the telemetry disagree."""
    start_over = (
        f"`kafka-consumer-groups.sh --delete --group {flow.group}` and `kafka-topics.sh --delete "
        f"--topic {flow.changelog_topic}`, all routers stopped: the next one reads from where "
        "KAFKA_AUTO_OFFSET_RESET says"
    )
    return Remedies(
        lost=f"start over with {start_over}",
        start_over=start_over,
        deleted=f"what formats remember is lost. Start over with {start_over}",
        eaten=(
            "that are not routed yet. Raise retention.ms of the topic; to go on without them, "
            f"start over with {start_over}"
        ),
    )
