"""What an app reads and writes, by role, and as whom."""

from dataclasses import dataclass

from aiokafka import TopicPartition

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
        dead_letter_partitions: Its number of partitions; 0 where it is that of the input.
        owns_output: Nobody else writes the output: where there is some, there is a state.
    """

    app_id: str
    group: str
    input_topic: str
    output_topic: str
    changelog_topic: str
    dead_letter_topic: str
    dead_letter_partitions: int = 0
    owns_output: bool = True

    def transactional_id(self, partition: int) -> str:
        """Return the id of an input partition's producer: always the same, it is the lock."""
        return f"{self.app_id}-{self.input_topic}-{partition}"

    def dead_letters_of(self, partition: int) -> TopicPartition:
        """Return where an input partition's dead letters go."""
        if self.dead_letter_partitions:
            partition %= self.dead_letter_partitions
        return TopicPartition(self.dead_letter_topic, partition)


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
    )
