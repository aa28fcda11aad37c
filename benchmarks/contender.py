"""What is measured: a contender, and where one run of it reads and writes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient

from benchmarks.judging import Expected


class ContenderError(Exception):
    """What is measured failed, and so has no figure."""


@dataclass(frozen=True, slots=True)
class Host:
    """The broker of all runs; of one that was given, only the address is known."""

    bootstrap: str
    admin: AIOKafkaAdminClient
    pid: int | None = None
    data_dir: Path | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A loaded topic, and what must come out of it."""

    topic: str
    records: int
    value_bytes: int
    expected: Expected


@dataclass(frozen=True, slots=True)
class Run:
    """Where one run reads and writes."""

    host: Host
    source: Source
    name: str
    """Application id, consumer group, and part of the names of its topics."""

    folder: Path
    """Exists, and holds logs and states of many runs."""

    @property
    def out_topic(self) -> str:
        """Return where it writes."""
        return f"{self.name}-chunks"

    @property
    def dead_letter_topic(self) -> str:
        """Return where the worker sets aside what has no session."""
        return f"{self.name}-dead-letter"

    @property
    def state_dir(self) -> Path:
        """Return where a peer keeps its state; not there yet."""
        return self.folder / f"{self.name}.state"

    @property
    def log(self) -> Path:
        """Return the file that holds what its processes print."""
        return self.folder / f"{self.name}.log"


@dataclass(frozen=True, slots=True)
class Contender:
    """Something to measure: how to start, follow and judge it."""

    about: str
    """Guarantee and settings, for the report."""

    command: Callable[[Run], list[str]]
    environment: Callable[[Run], dict[str, str]]
    prepare: Callable[[Run], Awaitable[None]]
    progress: Callable[[Run], Awaitable[int]]
    """Return how many records it is done with; 0 while nobody knows yet."""

    judge: Callable[[Run], Awaitable[str]]
    """Return what was found right; raises ContenderError on anything else."""

    processes: int = 1
    scale: float = 1.0
    """Times the records of the others: what warms up needs more, what is slow takes less."""

    statuses: frozenset[int] = frozenset({0})
    """How it may end after SIGTERM."""
