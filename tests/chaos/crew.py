"""The workers of a run, each in its slot behind proxies of its own, and how they ended."""

import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.chaos import stepped_worker
from tests.e2e.workers import Deployment, Worker

_COMMAND: Final = (sys.executable, "-m", "tests.chaos.stepped_worker", "worker")
_STARTED: Final = "partition is ready"
# Longer than a worker gives itself; what takes longer still hangs.
_STOP_WITHIN_S: Final = 35.0
_START_WITHIN_S: Final = 20.0
_UNREACHABLE: Final = 69
_STOPPED_LATE: Final = 1


@dataclass
class _Slot:
    worker: Worker | None = None
    started_at: float = 0.0
    outages: int = 0
    """How many of its ways to the brokers, or of the brokers, are broken at present."""
    broken_until: float = 0.0

    def had_outage(self) -> bool:
        """Tell whether the worker was without a broker since it started."""
        return self.outages > 0 or self.broken_until > self.started_at


class Crew:
    """Workers by slot.

    A worker may end by itself in one case: while it starts it finds no broker, and there was an
    outage (exit 69). Whoever runs workers starts such a one again, and so does ``look_after``. One
    that is asked to stop in an outage may run into its own limit (exit 1). All else is a failure.

    Args:
        deployment: Their app and their settings.
        bootstraps: Of each slot, the brokers' addresses through its proxies.
        command: What a worker is.

    Attributes:
        exits: How often a worker ended how.
        failures: What should not have been, with the end of the worker's log.
    """

    def __init__(
        self,
        deployment: Deployment,
        bootstraps: Mapping[int, str],
        command: Sequence[str] = _COMMAND,
    ) -> None:
        self._deployment, self._bootstraps, self._command = deployment, bootstraps, command
        self._slots = {slot: _Slot() for slot in bootstraps}
        # The loop looks after all, and so does each fault's thread before it begins.
        self._looking = threading.Lock()
        self.exits: Counter[str] = Counter()
        self.failures: list[str] = []

    def start(self, slot: int) -> None:
        """Start a worker in a slot that has none."""
        environment = self._deployment.environment()
        environment["KAFKA_BOOTSTRAP_SERVERS"] = self._bootstraps[slot]
        at = self._slots[slot]
        at.started_at = time.monotonic()
        at.worker = Worker(self._command, environment, self._deployment.folder)
        self._deployment.workers.append(at.worker)

    def kill(self, slot: int) -> None:
        self._take(slot).kill()
        self.exits["-9, killed by us"] += 1

    def freeze(self, slot: int) -> None:
        self._running(slot).freeze()

    def thaw(self, slot: int) -> None:
        self._running(slot).thaw()

    def stop(self, slot: int) -> None:
        """Ask a worker to end and wait until it has."""
        worker, at = self._take(slot), self._slots[slot]
        found_no_broker = at.had_outage()
        at.started_at = time.monotonic()  # what counts now is an outage from here on
        try:
            status = worker.terminate(within_s=_STOP_WITHIN_S)
        except AssertionError as error:
            self.failures.append(f"worker {slot} asked to stop: {error}")
            self.exits["hung when stopped, killed"] += 1
            worker.kill()
            return
        if status == _STOPPED_LATE and at.had_outage():
            self.exits["1, stopped without a broker"] += 1
        elif status == 0:
            self.exits["0, stopped by us"] += 1
        elif self._is_early(status, worker) and (found_no_broker or at.had_outage()):
            self.exits["69, no broker at the start"] += 1
        elif status == -signal.SIGTERM and _STARTED not in worker.output():
            # Python was still importing, so that the signal did what it does to any process.
            self.exits["-15, stopped before it had begun"] += 1
        else:
            self._blame(slot, worker, f"{status} when stopped")

    def step_clock(self, slot: int, number: signal.Signals | int) -> None:
        """Send a signal of ``stepped_worker`` once it can be taken; before, it would kill."""
        give_up_at = time.monotonic() + _START_WITHIN_S
        while stepped_worker.READY not in (worker := self._running(slot)).output():
            if time.monotonic() > give_up_at:
                self.failures.append(f"worker {slot} does not start; {worker.tail()}")
                return
            time.sleep(0.1)
        worker.signal(number)

    def look_after(self) -> None:
        """Replace the workers that ended by themselves."""
        with self._looking:
            for slot, at in self._slots.items():
                worker = at.worker
                if worker is not None and worker.is_wanted and not worker.is_running():
                    self._note_end(slot, worker)
                    self.start(slot)

    def outage_begins(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self._slots[slot].outages += 1

    def outage_ends(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self._slots[slot].outages -= 1
            self._slots[slot].broken_until = time.monotonic()

    def present(self) -> list[int]:
        """Return the slots that hold a worker."""
        return [slot for slot, at in self._slots.items() if at.worker is not None]

    def _running(self, slot: int) -> Worker:
        """Return the slot's worker; one that has ended by itself is replaced first."""
        self.look_after()
        worker = self._slots[slot].worker
        if worker is None:
            message = f"slot {slot} is empty"
            raise LookupError(message)
        return worker

    def _take(self, slot: int) -> Worker:
        worker = self._running(slot)
        self._slots[slot].worker = None  # from here on nobody looks after it
        return worker

    def _note_end(self, slot: int, worker: Worker) -> None:
        status = worker.exit_code(within_s=1)
        if self._is_early(status, worker) and self._slots[slot].had_outage():
            self.exits["69, no broker at the start"] += 1
        else:
            self._blame(slot, worker, f"{status} by itself")

    def _is_early(self, status: int, worker: Worker) -> bool:
        return status == _UNREACHABLE and _STARTED not in worker.output()

    def _blame(self, slot: int, worker: Worker, status: str) -> None:
        self.exits[status] += 1
        self.failures.append(f"worker {slot} ended with {status}; {worker.tail()}")
