"""What there is to see of a running worker, read when somebody asks and not before."""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from processor.clock import Clock
from processor.protocol.job import JobState
from processor.protocol.partition import Partition, Phase
from processor.protocol.partitions import Partitions
from processor.protocol.state import PartitionState

#: Records that flow are always some moments old when they are read.
_BEHIND_S: Final = 5.0


class Member(Protocol):
    """What is asked of the consumer that is a member of the group."""

    def answered_s_ago(self) -> float | None:
        """Return how long ago a broker last answered; ``None`` when none ever has."""
        ...

    def stable_end(self, partition: int) -> int | None:
        """Return the last stable offset that was told last; ``None`` when none was."""
        ...


class PartitionVitals(NamedTuple):
    """One partition as it is now; what is not known, as while it is being opened, is ``None``.

    Attributes:
        partition: Its number.
        state: In a word or two.
        position: The offset processed next.
        stable_end: The last stable offset, as the last fetch told it.
        lag_records: Offsets between the two.
        lag_s: The same in time; see ``processor_consumer_lag_seconds``.
        progressed_at_ms: When a commit last moved it on; 0 before it was opened.
        session_count: Sessions known.
        open_session_count: Sessions with an open chunk.
        open_record_count: Records in them.
        unaccounted_record_count: Must be 0.
        oldest_open_s: Age of the oldest open chunk.
        overdue_s: How long the chunk that is due first has been due.
        staged_bytes: Bytes of output that wait for a transaction.
    """

    partition: int
    state: str
    position: int | None = None
    stable_end: int | None = None
    lag_records: int | None = None
    lag_s: float | None = None
    progressed_at_ms: int = 0
    session_count: int = 0
    open_session_count: int = 0
    open_record_count: int = 0
    unaccounted_record_count: int = 0
    oldest_open_s: float = 0.0
    overdue_s: float = 0.0
    staged_bytes: int = 0


class Vitals(NamedTuple):
    """The worker as it is now.

    Attributes:
        at_ms: When (Unix milliseconds).
        is_joined: The group has given us what is here, for its present generation.
        answered_s_ago: How long ago a broker last answered.
        stuck: What the watchdog says of partitions that stand still.
        partitions: Those that we have.
    """

    at_ms: int
    is_joined: bool
    answered_s_ago: float | None
    stuck: Sequence[str]
    partitions: Sequence[PartitionVitals]

    @property
    def lag_records(self) -> int:
        """Offsets that all partitions are behind, as far as is known."""
        return sum(it.lag_records or 0 for it in self.partitions)


class VitalsReader:
    """Reads them.

    Args:
        partitions: The worker's.
        clock: Its time.
        member: Its consumer, once there is one.
        stuck: What the watchdog says now.
    """

    def __init__(
        self,
        partitions: Partitions,
        clock: Clock,
        member: Callable[[], Member | None],
        stuck: Callable[[], Sequence[str]],
    ) -> None:
        self._partitions = partitions
        self._clock = clock
        self._member = member
        self._stuck = stuck

    def read(self) -> Vitals:
        """Return the worker as it is now."""
        now_ms, member = self._clock.now_ms(), self._member()
        return Vitals(
            now_ms,
            self._partitions.is_settled,
            None if member is None else member.answered_s_ago(),
            self._stuck(),
            [
                _of(it, None if member is None else member.stable_end(it.number), now_ms)
                for it in sorted(self._partitions, key=lambda it: it.number)
            ],
        )


def _of(partition: Partition, stable_end: int | None, now_ms: int) -> PartitionVitals:
    state = partition.state
    if state is None:
        return PartitionVitals(
            partition.number, partition.phase.value, progressed_at_ms=partition.progressed_at_ms
        )
    lag = None if stable_end is None else max(stable_end - state.position, 0)
    lag_s = _lag_s(state, lag, now_ms)
    vitals = PartitionVitals(
        partition.number,
        _state_of(partition.phase, state, lag, lag_s),
        state.position,
        stable_end,
        lag,
        lag_s,
        partition.progressed_at_ms,
        staged_bytes=state.staged_bytes,
    )
    return _with_sessions(vitals, state, now_ms) if isinstance(state, PartitionState) else vitals


def _with_sessions(vitals: PartitionVitals, state: PartitionState, now_ms: int) -> PartitionVitals:
    sessions = state.sessions
    opened_at_ms = sessions.oldest_opened_at_ms
    return vitals._replace(
        session_count=len(sessions),
        open_session_count=sessions.open_session_count,
        open_record_count=sessions.open_record_count,
        unaccounted_record_count=state.unaccounted_record_count,
        oldest_open_s=0.0 if opened_at_ms is None else _s_between(opened_at_ms, now_ms),
        overdue_s=_s_between(sessions.next_deadline_ms, now_ms),
    )


def _state_of(phase: Phase, state: JobState, lag: int | None, lag_s: float | None) -> str:
    if phase is not Phase.READY:
        return str(phase.value)
    if state.position < state.seen:
        return "replaying"
    is_behind = lag and (lag_s is None or lag_s > _BEHIND_S)
    return "catching up" if is_behind else "ready"


def _lag_s(state: JobState, lag: int | None, now_ms: int) -> float | None:
    if not lag:
        return None if lag is None else 0.0
    return _s_between(state.as_of_ms, now_ms) if state.as_of_ms else None


def _s_between(from_ms: int, to_ms: int) -> float:
    """Return the seconds that have passed, 0 for a time that is still to come."""
    return max(to_ms - from_ms, 0) / 1000
