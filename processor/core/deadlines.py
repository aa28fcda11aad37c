"""Which open session of a partition is due next, found in O(1)."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping

from processor.core.accumulator import SessionAccumulator


class Deadlines:
    """Sessions with an open chunk, by the log time of its last and of its first record.

    Two insertion-ordered maps, whose first elements are due next, for idle and for age. Records
    come in order, so a session that enters or moves goes to the end. Only a restore breaks that: a
    restored session may be newer than the records that the replay brings next, so until log time
    has passed it, order of arrival is not order of time, and whoever asks has to ``sort``.
    """

    def __init__(self) -> None:
        self._by_last: OrderedDict[str, None] = OrderedDict()
        self._by_first: OrderedDict[str, None] = OrderedDict()
        self._is_sorted = True
        self._restored_at_ms = 0

    def __contains__(self, session: str) -> bool:
        return session in self._by_first

    def __iter__(self) -> Iterator[str]:
        """Yield the sessions, the one with the oldest first record first."""
        return iter(self._by_first)

    def touch(self, session: str) -> None:
        """Note that a record of ``session`` came."""
        if session in self._by_last:
            self._by_last.move_to_end(session)
        else:
            self._by_last[session] = self._by_first[session] = None

    def touch_all(self, opened: Iterable[str], touched: Iterable[str]) -> None:
        """Note a stretch of the log: ``touch`` for each record, but faster.

        Args:
            opened: Sessions that entered, in the order of their first open records.
            touched: All that had records and have an open chunk, in the order of their last ones.
        """
        self._by_first.update(dict.fromkeys(opened))
        for session in touched:
            self._by_last[session] = None
            self._by_last.move_to_end(session)

    def leave(self, session: str) -> None:
        """Drop a session, if it is here: it has no open chunk any more."""
        self._by_last.pop(session, None)
        self._by_first.pop(session, None)

    def unsort(self, restored_at_ms: int) -> None:
        """Note that a session was restored whose last record has this log time."""
        self._restored_at_ms = max(self._restored_at_ms, restored_at_ms)
        self._is_sorted = False

    def sort(self, sessions: Mapping[str, SessionAccumulator], log_time_ms: int) -> None:
        """Put the orders right after a restore.

        Args:
            sessions: All that may have an open chunk.
            log_time_ms: As of now.
        """
        if self._is_sorted:
            return
        held = [(key, it.held) for key, it in sessions.items() if it.held is not None]
        last, first = ((lambda it: it[1].last_at_ms), (lambda it: it[1].opened_at_ms))
        self._by_last = OrderedDict.fromkeys(key for key, _ in sorted(held, key=last))
        self._by_first = OrderedDict.fromkeys(key for key, _ in sorted(held, key=first))
        self._is_sorted = log_time_ms >= self._restored_at_ms

    def next_idle(self) -> str | None:
        """Return the session whose last record is the oldest, ``None`` where none has any."""
        return next(iter(self._by_last), None)

    def next_aged(self) -> str | None:
        """Return the session whose first record is the oldest, ``None`` where none has any."""
        return next(iter(self._by_first), None)
