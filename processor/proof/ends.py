"""One session's ends: which of them ask for a final chunk, and which final chunks await theirs.

An end right behind an end is ignored, unless the policy has forgotten the session between the two.
Where that setting has changed, nothing tells by which one an end was read: there each end behind an
end may have been ignored, or have made a final chunk, and the chunks say which.
"""

from processor.proof.rules import NEVER_MS
from processor.proof.seen import Scope


class Ends:
    """Where a session stands, by its chunks, and behind the last of them by its log.

    Args:
        scope: Its partition.

    Attributes:
        is_ended: What came last is an end.
        awaited_count: Ends that final chunks tell of and the log has not come to: of sessions that
            are forgotten at once there may be several.
    """

    __slots__ = ("_at_ms", "_ignored_count", "_scope", "awaited_count", "is_ended")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._at_ms: int | None = None
        self._ignored_count = 0
        self.is_ended = False
        self.awaited_count = 0

    def go_on(self) -> None:
        """Take records: there is something to end."""
        self.is_ended, self._at_ms, self._ignored_count = False, None, 0

    def is_ignored(self, at_ms: int) -> bool:
        """Tell whether an end of this log time asks for nothing, if it is the next message."""
        scope, ended_at_ms = self._scope, self._at_ms
        if not self.is_ended or (self.awaited_count and scope.is_forgetting_changed):
            return False
        if ended_at_ms is None:
            return not self.awaited_count
        forget_ms = scope.forget_ms or NEVER_MS
        return scope.is_forgetting_changed or at_ms - ended_at_ms <= forget_ms

    def ignore(self, count: int = 1) -> None:
        """Pass ends by that ask for nothing."""
        self._ignored_count += count

    def meets(self, at_ms: int) -> bool:
        """Return whether a final chunk awaits this end of the log, and if so, take it."""
        if not self.awaited_count:
            return False
        self.awaited_count -= 1
        self._at_ms = at_ms
        return True

    def take(self, at_ms: int | None) -> None:
        """Take an end that asks for a final chunk, its log time where that is known."""
        self.is_ended, self._at_ms, self._ignored_count = True, at_ms, 0

    def wait(self) -> None:
        """Take a final chunk whose end is not read yet, and no end behind the one before either."""
        self.is_ended, self._ignored_count = True, 0
        self.awaited_count += 1

    def takes_an_ignored(self) -> bool:
        """Return whether an end that was passed by may be a final chunk's, and if so, take it."""
        if not (self._scope.is_forgetting_changed and self._ignored_count):
            return False
        self.is_ended = True
        self._ignored_count -= 1
        return True

    def silent_ms(self, at_ms: int) -> int | None:
        """Return how long before a log time the last end was; ``None`` where that is not known."""
        is_known = self._at_ms is not None and not self.awaited_count
        return at_ms - (self._at_ms or 0) if is_known else None
