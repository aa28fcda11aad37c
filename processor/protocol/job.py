"""What a partition is opened for: chunking, or routing. Interfaces, and what both jobs share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from processor.core.errors import StateError
from processor.protocol.changelog import PartitionEntry
from processor.protocol.port import Batch, EntryTaker, Transaction
from processor.protocol.stage import Stage

#: A moved position alone is committed this often: a transaction costs a marker in every topic.
POSITION_INTERVAL_MS: Final = 1000


class Remedies(NamedTuple):
    """What a person can do where state and log disagree: parts of sentences.

    Attributes:
        lost: "If the changelog is lost, ...".
        start_over: "Start over with ...".
        deleted: Follows "entries were deleted": what that means, and what to do.
        eaten: Follows "retention has eaten records": which, and what to do.
    """

    lost: str
    start_over: str
    deleted: str
    eaten: str


class Changelog(EntryTaker, Protocol):
    """What a job keeps of a changelog."""

    @property
    def entries(self) -> Mapping[bytes, bytes]:
        """Latest entries by key, the partition's own among them."""
        ...


ChangelogT = TypeVar("ChangelogT", bound=Changelog)


@dataclass(frozen=True, slots=True)
class Opened(Generic[ChangelogT]):
    """What is known of a partition once it is ours and fits the log.

    Attributes:
        number: Its number.
        where: Topic and partition, for messages.
        entry: Where its last owner left it; a first one's beginning.
        changelog: What the job keeps of it.
        log_start: First offset that the log still holds.
        omitted: Offsets whose output its topic has refused as too large.
    """

    number: int
    where: str
    entry: PartitionEntry
    changelog: ChangelogT
    log_start: int
    omitted: frozenset[int]


class JobState(Protocol):
    """What one opening of a partition knows: batches in, transactions out."""

    @property
    def position(self) -> int:
        """The offset fed next."""
        ...

    @property
    def seen(self) -> int:
        """First offset never processed, by us or by an owner before."""
        ...

    @property
    def is_behind(self) -> bool:
        """Whether there is more in the log than it was fed."""
        ...

    @property
    def as_of_ms(self) -> int:
        """When the last record processed was appended, or nothing was left; 0 when never.

        The later of both, in Unix milliseconds.
        """
        ...

    @property
    def staged_bytes(self) -> int:
        """Bytes staged for the next transaction, for whoever bounds memory."""
        ...

    def feed(self, batch: Batch) -> None:
        """Process a batch.

        Raises:
            StateError: It does not start at our position.
        """
        ...

    def take(self, now_ms: int) -> tuple[Transaction, Stage] | None:
        """Cut off what is staged, if anything is worth it, and what to tell of once committed."""
        ...


class Job(Protocol[ChangelogT]):
    """What all partitions of an app have in common."""

    @property
    def topic(self) -> str:
        """The topic that is read."""
        ...

    @property
    def start_at_end(self) -> bool:
        """Whether a first start begins at the log's end, not its start."""
        ...

    @property
    def rule(self) -> dict[str, Any]:
        """What the output depends on beside the log, by name, as the changelog keeps it."""
        ...

    @property
    def remedies(self) -> Remedies:
        """What a person can do where state and log disagree."""
        ...

    def check(self, entry: PartitionEntry, where: str) -> None:
        """Return if what another owner left can be gone on from.

        Raises:
            ConfigError: The settings are others now.
        """
        ...

    def new_changelog(self) -> ChangelogT:
        """Return what the changelog is to be read into."""
        ...

    def restore(self, opened: Opened[ChangelogT]) -> JobState:
        """Return the state that the last owner left.

        Raises:
            StateError: It can't be had.
        """
        ...


class Pace:
    """When a transaction is worth it: at once with output, now and then for a position alone.

    Args:
        seen: First offset never processed, as the changelog has it.
    """

    def __init__(self, seen: int) -> None:
        self._taken_at_ms: int | None = None
        self._taken_seen = seen

    def is_due(self, now_ms: int, seen: int) -> bool:
        """Tell whether a position alone is worth it; the first after an opening always is."""
        if self._taken_at_ms is None:
            return True
        return seen != self._taken_seen and now_ms - self._taken_at_ms >= POSITION_INTERVAL_MS

    def note(self, now_ms: int, seen: int) -> None:
        """Note what was taken."""
        self._taken_at_ms, self._taken_seen = now_ms, seen


def check_follows(batch: Batch, position: int, topic: str) -> None:
    """Return if ``batch`` starts at ``position``.

    Raises:
        StateError: It does not; a record was lost on the way.
    """
    if batch.first_offset != position:
        message = (
            f"{topic}[{batch.partition}]: a batch starts at {batch.first_offset}, next is "
            f"{position}; records were lost after they were fetched. Nothing was committed past "
            "them: restart, and report this"
        )
        raise StateError(message)
