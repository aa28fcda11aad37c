"""Whether a partition stands still though it should not: judged from what was seen of it.

Theory of operation. Whoever watches looks at intervals, and asks the broker each time where the
log ends, over a connection that has no part in the consuming. Only what the broker has just
answered is looked at: while it is away there are no looks, so an outage is never taken for a
partition that is stuck. What is left out of one look (no answer, rebalancing, being opened) is
forgotten, and its time begins anew. So does all time when a look comes late: the process was
stopped then, or its machine, and nothing could have moved.

Positions are compared, never offsets of records: the marker that ends a transaction is at an
offset of its own and is never delivered. The end is the last stable offset, since nothing beyond
it may be read; if that is what stands still, a producer has left a transaction open.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class Look(NamedTuple):
    """One partition that records flow to, as it was at one moment.

    Attributes:
        incarnation: Which opening of it.
        position: The offset that it is to be fed next.
        stable_end: The last stable offset, just told by the broker.
        high_watermark: The end of the log, told after that.
    """

    incarnation: int
    position: int
    stable_end: int
    high_watermark: int


class Trouble(Enum):
    """Why a partition does not go on."""

    STUCK = "stuck"
    OPEN_TRANSACTION = "open transaction"


class Finding(NamedTuple):
    """A partition that has not gone on for too long.

    Attributes:
        partition: Its number.
        trouble: Why.
        offset: Where it stands; of an open transaction the last stable offset, where that begins.
        for_s: How long this has been so, in seconds.
    """

    partition: int
    trouble: Trouble
    offset: int
    for_s: float


class StuckJudge:
    """Tells, look by look, which partitions stand still.

    Args:
        after_s: Time without any movement that is too long.
        longest_gap_s: Time between two looks after which what was known is forgotten.
    """

    def __init__(self, after_s: float, longest_gap_s: float) -> None:
        self._after_s = after_s
        self._longest_gap_s = longest_gap_s
        self._looked_at_s: float | None = None
        self._since_s: dict[tuple[int, Trouble, int, int], float] = {}

    def judge(self, now_s: float, looks: Mapping[int, Look]) -> list[Finding]:
        """Take the next look and return what has stood still for ``after_s`` or longer.

        Args:
            now_s: A monotonic time; if it steps back all the same, time begins anew.
            looks: The partitions that should move and whose end the broker has just told.
        """
        if self._looked_at_s is None or not 0 <= now_s - self._looked_at_s <= self._longest_gap_s:
            self._since_s = {}
        self._looked_at_s = now_s
        # What is not in trouble now, or at another place than before, is forgotten by this.
        self._since_s = {
            place: self._since_s.get(place, now_s)
            for number, look in looks.items()
            if (place := _trouble_of(number, look)) is not None
        }
        return [
            Finding(number, trouble, offset, now_s - since_s)
            for (number, trouble, offset, _), since_s in self._since_s.items()
            if now_s - since_s >= self._after_s
        ]


def _trouble_of(number: int, look: Look) -> tuple[int, Trouble, int, int] | None:
    """Return what would be trouble if it stayed exactly so."""
    if look.position < look.stable_end:
        return number, Trouble.STUCK, look.position, look.incarnation
    if look.stable_end < look.high_watermark:
        return number, Trouble.OPEN_TRANSACTION, look.stable_end, 0
    return None
