"""Records that repeat another one by their ``record-id``, found anew from the log.

A worker leaves them out as far as its policy says, which stands in the chunks. Since that may
change from one chunk to the next, each is noted with the offset that it repeats, and judged when a
chunk comes.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from processor.core.records import RECORD_ID
from processor.proof.message import Message
from processor.proof.rules import Logged
from processor.proof.seen import Seen

#: Offsets that are remembered at least: until a chunk tells of a policy, its records are read.
_LEAST: Final = 10_000


class Repeats:
    """Finds the repeated records of one partition.

    Args:
        log_start: First offset that the log still holds.
    """

    def __init__(self, log_start: int) -> None:
        self._log_start = log_start
        self._offsets: OrderedDict[tuple[bytes, bytes], int] = OrderedDict()

    def take(self, messages: Sequence[Message], window: int) -> dict[int, int]:
        """Take the log's next messages.

        Args:
            messages: The messages.
            window: Offsets to remember.

        Returns:
            By the offset of each that repeats one, the latest offset that it repeats. Where
            retention may have deleted that one, it is below the log's start.
        """
        found: dict[int, int] = {}
        for message in messages:
            # The last header of a name counts.
            name = dict(message.headers).get(RECORD_ID) if message.headers else None
            if not name or message.value is None:
                continue
            at = (message.key or b"", name)
            earlier = self._offsets.pop(at, None)
            if earlier is None and self._log_start:
                earlier = self._log_start - 1
            if earlier is not None:
                found[message.offset] = earlier
            self._offsets[at] = message.offset
        if self._offsets and messages:
            oldest = messages[-1].offset - max(window, _LEAST)
            while next(iter(self._offsets.values()), oldest) < oldest:
                self._offsets.popitem(last=False)
        return found


def left_out(queue: Sequence[Logged], seen: Seen, window: int) -> list[Logged]:
    """Return the messages up to a chunk's last record that it left out because they repeat one.

    Args:
        queue: The session's messages.
        seen: Its next chunk.
        window: Offsets in which any chunk so far left repeated records out: at a change of policy
            some were left out by the one before.
    """
    chunked = {it.offset for it in seen.chunk.records}
    last = seen.last_offset
    return [
        it
        for it in queue
        if it.offset <= last and it.repeats_within(window) and it.offset not in chunked
    ]
