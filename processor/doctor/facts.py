"""What the doctor knows when it judges: plain values, as brokers told them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from processor.kafka.reading import Ends
from processor.kafka.topic_checks import TopicFacts
from processor.protocol.port import LogRecord


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """What one broker says of itself.

    Attributes:
        node_id: Its number in the cluster.
        versions: The newest version that it knows of each request, by the request's number.
        configs: Its settings, as far as it tells them.
        hidden: Why it doesn't tell them; empty where it does.
    """

    node_id: int
    versions: Mapping[int, int]
    configs: Mapping[str, str] = field(default_factory=dict)
    hidden: str = ""

    def number(self, key: str) -> int | None:
        """Return a setting that is a number, ``None`` if the broker doesn't tell it."""
        value = self.configs.get(key)
        return None if value is None else int(value)


class Replicas(NamedTuple):
    """Where a partition is kept: its leader, -1 for none, and how many copies, and in sync."""

    partition: int
    leader: int
    copies: int
    in_sync: int


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic that there is.

    Attributes:
        facts: What every start looks at.
        configs: Its settings.
        replicas: Of each partition.
    """

    facts: TopicFacts
    configs: Mapping[str, str]
    replicas: tuple[Replicas, ...]


@dataclass(frozen=True, slots=True)
class InputPartition:
    """One partition that is read, with its part of the changelog.

    Attributes:
        number: Its own.
        start: First offset that the log still holds.
        ends: Where it ends.
        committed: The group's offset; ``None`` for none.
        changelog_start: First offset of the changelog.
        changelog_end: Where that ends; equal while there is no state.
    """

    number: int
    start: int
    ends: Ends
    committed: int | None
    changelog_start: int
    changelog_end: int

    @property
    def lag(self) -> int:
        """Offsets that a worker has before it."""
        position = self.start if self.committed is None else self.committed
        return max(self.ends.stable - position, 0)


@dataclass(slots=True)
class Sample:
    """What the newest records of a topic were like.

    Attributes:
        topic: Its name.
        partition_count: Its partitions, whether sampled or not.
        asked_at_ms: Our clock when the last of them had come, Unix milliseconds.
        partitions: Where each key was seen.
        records: How many records there are in the sample.
        keyless: Those of them without a key.
        newest_ms: The latest timestamp; 0 for none.
        back_ms: How far a timestamp was behind an earlier one of its partition, at most.
    """

    topic: str
    partition_count: int
    asked_at_ms: int = 0
    partitions: dict[bytes, set[int]] = field(default_factory=dict)
    records: int = 0
    keyless: int = 0
    newest_ms: int = 0
    back_ms: int = 0
    _latest_ms: Counter[int] = field(default_factory=Counter)

    def add(self, partition: int, records: Iterable[LogRecord]) -> None:
        """Look at records of a partition, in their order."""
        for record in records:
            self.records += 1
            if record.key:
                self.partitions.setdefault(record.key, set()).add(partition)
            else:
                self.keyless += 1
            latest_ms = self._latest_ms[partition]
            self.back_ms = max(self.back_ms, latest_ms - record.timestamp)
            self._latest_ms[partition] = max(latest_ms, record.timestamp)
            self.newest_ms = max(self.newest_ms, record.timestamp)
