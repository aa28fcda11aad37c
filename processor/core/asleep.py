"""The sessions of a partition that have nothing open, whole."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from operator import itemgetter

from processor.core.dormant import DormantSessions
from processor.core.policy import NEVER_MS, ChunkPolicy
from processor.core.session_state import SessionState


class SessionsAsleep:
    """The packed sessions (``dormant.py``), and when those that ended did, if that matters.

    What comes for an ended session that is forgotten begins anew whether it is still here or not
    (``accumulator.py``), so dropping it only saves memory. But it must be known while a replay
    could pass by its records or its end, which would be taken for new: it stays until every open
    record is behind its end.

    Args:
        policy: Says whether ended sessions are forgotten, and when.
        packed: Sessions to begin with; taken over as they are.
    """

    def __init__(self, policy: ChunkPolicy, packed: DormantSessions) -> None:
        self._forget_ms = policy.forget_ms
        self._packed = packed
        # By the log time of their ends. Sorted but for what a replay passes by again, which is
        # dropped later than it could be.
        self._ended: OrderedDict[str, int] = OrderedDict()
        self._is_sorted = True

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    @property
    def size_bytes(self) -> int:
        """Memory of the packed sessions."""
        return self._packed.size_bytes

    def get(self, session: str) -> SessionState | None:
        """Return the state of ``session``, if it is asleep."""
        state = self._packed.get(session)
        return state and _ended_at(state, self._ended.get(session, 0))

    def pop(self, session: str) -> SessionState | None:
        """Return the state of ``session``, if it is asleep, which it is not any more."""
        state, ended_at_ms = self._packed.pop(session), self._ended.pop(session, 0)
        return state and _ended_at(state, ended_at_ms)

    def put(self, state: SessionState) -> None:
        """Put a session to sleep."""
        self._packed.put(
            state.session.encode(), state.t, state.next_offset, state.digest, ended=state.ended
        )
        if self._forget_ms < NEVER_MS and state.last_at_ms:
            self._ended[state.session] = state.last_at_ms

    def restore(self, state: SessionState) -> None:
        """Put a session to sleep that may have ended at any time."""
        self.put(state)
        self._is_sorted = False

    def drop_forgotten(
        self, log_time_ms: int, oldest_opened_at_ms: Callable[[], int | None]
    ) -> list[str]:
        """Drop the ended sessions that are forgotten by now, and return them.

        Args:
            log_time_ms: As of now.
            oldest_opened_at_ms: Gives the log time of the first record of the oldest open chunk, if
                any; after a restore that takes sorting all of them, so it is asked only if need be.
        """
        if not self._is_sorted:
            self._ended = OrderedDict(sorted(self._ended.items(), key=itemgetter(1)))
            self._is_sorted = True
        forgotten: list[str] = []
        while self._ended:
            session, ended_at_ms = next(iter(self._ended.items()))
            if log_time_ms - ended_at_ms <= self._forget_ms:
                break
            oldest_at_ms = oldest_opened_at_ms()
            if oldest_at_ms is not None and ended_at_ms >= oldest_at_ms:
                break
            self.pop(session)
            forgotten.append(session)
        return forgotten


def _ended_at(state: SessionState, at_ms: int) -> SessionState:
    """Return a state that no packed session tells whole: with when it ended, 0 if unknown."""
    return replace(state, last_at_ms=at_ms) if at_ms else state
