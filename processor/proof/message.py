"""What a proof reads: messages of three topics."""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol


class Message(Protocol):
    """A message as a Kafka client gives it."""

    @property
    def offset(self) -> int: ...  # noqa: D102 - the names say it
    @property
    def timestamp(self) -> int: ...  # noqa: D102
    @property
    def timestamp_type(self) -> int: ...  # noqa: D102
    @property
    def key(self) -> bytes | None: ...  # noqa: D102
    @property
    def value(self) -> bytes | None: ...  # noqa: D102
    @property
    def headers(self) -> Sequence[tuple[str, bytes]]: ...  # noqa: D102


class Topics(NamedTuple):
    """Names of the topics that are compared."""

    records: str
    chunks: str
    dead_letters: str


class Starts(NamedTuple):
    """First offsets of one partition of them; above 0 where retention has deleted the rest."""

    records: int = 0
    chunks: int = 0
    dead_letters: int = 0


WHOLE: Final = Starts()
#: Chunks without a log: every record counts as deleted from it.
ALONE: Final = Starts(records=1 << 62)
