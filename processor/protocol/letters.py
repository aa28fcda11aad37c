"""Dead letters read back: what each says, and the record that it becomes again."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from processor.headers import number_in
from processor.protocol.dead_letter import ADDED, OFFSET, PARTITION, REASON, TOPIC
from processor.protocol.port import LogRecord

#: How often a record was sent again.
REPLAY_COUNT: Final = "processor-replay-count"
#: Where a record that was sent again first stood: ``records[3]@42``.
ORIGIN: Final = "processor-origin"
#: Beyond this a letter is left where it is: what comes back so often would do so for ever.
MAX_REPLAYS: Final = 5


@dataclass(frozen=True)
class Letter:
    """A message of the dead-letter topic.

    Attributes:
        topic: The dead-letter topic.
        partition: Its partition.
        record: The message.
    """

    topic: str
    partition: int
    record: LogRecord

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]@{self.record.offset}"

    @property
    def reason(self) -> str:
        """Why it was set aside, such as ``no-key``; empty if it doesn't say."""
        return self._said(REASON)

    @property
    def origin_topic(self) -> str:
        """The topic that the record stood in; empty if it doesn't say."""
        return self._said(TOPIC)

    @property
    def origin(self) -> str:
        """Where the record stood: ``records[3]@42``."""
        return f"{self.origin_topic}[{self._said(PARTITION)}]@{self._said(OFFSET)}"

    @property
    def replay_count(self) -> int:
        """How often the record was sent again before; 0 if it doesn't say."""
        return number_in(self._headers.get(REPLAY_COUNT)) or 0

    def record_headers(self) -> list[tuple[str, bytes]]:
        """Return the headers with which it becomes a record again.

        The record's own, and beside them where it first stood and how often it was sent again.
        Those that made it a dead letter are left out: it may become one again, with new ones.
        """
        own = list(self.record.headers)
        for name in reversed(ADDED):  # they were added at the end, those that were not there
            if own and own[-1][0] == name:
                own.pop()
        kept = [it for it in own if it[0] != REPLAY_COUNT]
        if all(name != ORIGIN for name, _ in kept):
            kept.append((ORIGIN, self.origin.encode()))
        return [*kept, (REPLAY_COUNT, b"%d" % (self.replay_count + 1))]

    @cached_property
    def _headers(self) -> dict[str, bytes]:
        return dict(self.record.headers)

    def _said(self, name: str) -> str:
        # Kafka allows a header to be null.
        return (self._headers.get(name) or b"").decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which letters are meant.

    Attributes:
        since_ms: Those of records from this time on, in Unix milliseconds.
        reason: Those with this reason alone; ``None`` for all.
        most: So many at most; ``None`` for all.
        origin_topic: Those from this topic alone; ``None`` for all.
    """

    since_ms: int = 0
    reason: str | None = None
    most: int | None = None
    origin_topic: str | None = None

    def takes(self, letter: Letter) -> bool:
        """Tell whether a letter is meant, however many there are."""
        return (
            letter.record.timestamp >= self.since_ms
            and self.reason in {None, letter.reason}
            # What says nothing of its origin was put there by hand, and is ours as much as theirs.
            and self.origin_topic in {None, letter.origin_topic or self.origin_topic}
        )
