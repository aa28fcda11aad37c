"""The only reader of the time."""

import time
from typing import Protocol


class Clock(Protocol):
    """Tells Unix milliseconds."""

    def now_ms(self) -> int:
        """Return the time now, in Unix milliseconds."""
        ...


class SystemClock:
    """The machine's clock, kept from going backward.

    A step back (NTP, a resumed machine) makes it stand still until the time has caught up: a
    deadline that has passed must not lie ahead again.
    """

    def __init__(self) -> None:
        self._latest_ms = 0

    def now_ms(self) -> int:
        """Return the time now, never less than before."""
        self._latest_ms = max(self._latest_ms, time.time_ns() // 1_000_000)
        return self._latest_ms
