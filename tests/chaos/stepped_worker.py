"""``python -m tests.chaos.stepped_worker VERB``: the command line on a clock that can be stepped.

The two signals step the time that ``processor.clock`` reads from the system, below its own guard
against going backward; nothing else is changed. (Faust takes SIGUSR1 and SIGUSR2 for itself.)
"""

import signal
import sys
import time
from types import SimpleNamespace
from typing import Final

import processor.clock
from processor.cli import main

STEP_S: Final = 60
READY: Final = "the clock can be stepped"
FORWARD: Final = signal.SIGRTMIN + 1
BACK: Final = signal.SIGRTMIN + 2


class SteppedTime:
    """What ``processor.clock`` asks of the module ``time``."""

    def __init__(self) -> None:
        self.ahead_s = 0

    def time_ns(self) -> int:
        return time.time_ns() + self.ahead_s * 1_000_000_000

    def on_signal(self, number: int, _: object) -> None:
        self.ahead_s += STEP_S if number == FORWARD else -STEP_S
        sys.stderr.write(f"clock stepped, now {self.ahead_s} s ahead\n")


def step_with_signals() -> None:
    """Put the clock of this process under the signals."""
    stepped = SteppedTime()
    for number in (FORWARD, BACK):
        signal.signal(number, stepped.on_signal)
    vars(processor.clock)["time"] = SimpleNamespace(time_ns=stepped.time_ns)
    sys.stderr.write(f"{READY}\n")


if __name__ == "__main__":
    step_with_signals()
    try:
        sys.exit(main())
    finally:
        # At its end Python gives them back their default, which is to kill.
        signal.pthread_sigmask(signal.SIG_BLOCK, {FORWARD, BACK})
