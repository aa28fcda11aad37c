"""Records that name another session than their key: counted, told once, left where they are."""

import logging
from collections.abc import Sequence
from typing import Final

log: Final = logging.getLogger(__name__)


class Mismatches:
    """Those of one partition, as long as it is open.

    Args:
        topic: The records topic.
        partition: Their partition's number.
    """

    def __init__(self, topic: str, partition: int) -> None:
        self._about = {"topic": topic, "partition": partition}
        self._is_told = False

    def count(self, found: Sequence[tuple[int, str]]) -> int:
        """Return how many there are, and tell of the first one.

        Args:
            found: Their offsets, and the sessions that they are in.
        """
        if found and not self._is_told:
            self._is_told = True
            offset, session = found[0]
            log.warning(
                "a record names another session than its key and stays with its key; is the "
                "producer's key right? More of them are only counted",
                extra={**self._about, "offset": offset, "session": session},
            )
        return len(found)
