"""One session as it is computed again: where its chain stands, and what waits behind that."""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from itertools import islice
from operator import attrgetter
from typing import Final

from processor.core.session_state import SessionState
from processor.proof.repeats import left_out
from processor.proof.rules import Logged
from processor.proof.seen import Seen

_offset_of: Final = attrgetter("offset")


class Backlog:
    """Where a session's chain stands, the messages behind that, and the chunks that wait.

    Args:
        name: The session.

    Attributes:
        state: What the chunks that are done with have left.
        queue: The messages behind that, in order.
        due: The chunks that wait to be judged.
    """

    __slots__ = ("due", "queue", "state")

    def __init__(self, name: str) -> None:
        self.state = SessionState.new(name)
        self.queue: list[Logged] = []
        self.due: deque[Seen] = deque()

    def go_on_from(self, state: SessionState) -> None:
        """Stand at ``state``, whose messages are done with."""
        self.state = state
        del self.queue[: bisect_left(self.queue, state.next_offset, key=_offset_of)]

    def state_after(self, seen: Seen) -> SessionState:
        """Return the state that a chunk leaves if it is taken as it stands."""
        chunk = seen.chunk
        next_offset, ended_at_ms = max(self.state.next_offset, seen.last_offset + 1), 0
        if chunk.final:
            behind = next(
                (
                    it
                    for it in self.queue
                    if it.offset >= next_offset and not _is_left_out(it, seen)
                ),
                None,
            )
            if behind is not None and behind.value is None:
                next_offset, ended_at_ms = behind.offset + 1, behind.log_time_ms
        digest = bytes.fromhex(chunk.digest)
        return SessionState(
            chunk.session, chunk.t, digest, next_offset, chunk.final, last_at_ms=ended_at_ms
        )

    def needed_for(self, seen: Seen, window: int) -> list[Logged]:
        """Return the messages that a chunk comes from, and the one that may have closed it."""
        count = self._count_to(seen)
        needed = self.queue[:count]
        if window:
            gone = {it.offset for it in left_out(needed, seen, window)}
            size = seen.chunk.policy.deduplicate_records
            needed = [it for it in needed if it.offset not in gone and not it.repeats_within(size)]
        if not seen.chunk.clock:
            needed += islice(self._behind(seen, count), 1)
        return needed

    def has_behind(self, seen: Seen) -> bool:
        """Tell whether a message behind the chunk's last record may have closed it."""
        return any(True for _ in self._behind(seen, self._count_to(seen)))

    def _behind(self, seen: Seen, count: int) -> Iterator[Logged]:
        return (it for it in islice(self.queue, count, None) if not _is_left_out(it, seen))

    def _count_to(self, seen: Seen) -> int:
        """Return how many messages there are up to a chunk's last record."""
        count = len(seen.values)
        if 0 < count <= len(self.queue) and self.queue[count - 1].offset == seen.last_offset:
            return count  # as nearly always, since its records are all that is before
        return bisect_left(self.queue, seen.last_offset + 1, key=_offset_of)

    def leave_ignored(self, window: int, forget_ms: int) -> None:
        """Pass by what an empty final chunk did: ends behind an end, and what some policy left out.

        Args:
            window: Offsets in which any chunk so far left repeated records out.
            forget_ms: After so long a session that ended begins anew; below 0, at once.
        """
        state, count = self.state, 0
        for logged in self.queue:
            if logged.value is None:
                silent_ms = logged.log_time_ms - state.last_at_ms if state.last_at_ms else 0
                if not state.ended or silent_ms > forget_ms:
                    break
            elif not logged.repeats_within(window):
                break
            count += 1
        del self.queue[:count]


def _is_left_out(logged: Logged, seen: Seen) -> bool:
    return logged.repeats_within(seen.chunk.policy.deduplicate_records)
