"""All partitions of this worker: assigned, fed, committed, reopened, given back.

Theory of operation. The group gives and takes; each partition lives by itself. A failure of one
closes it and opens it again in place, with a growing wait, for as long as the group says it is
ours; the others go on. What no reopening can mend (state and log disagree, settings are wrong,
or one partition fails again and again) is fatal and ends the process, which says why.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Final

from processor.core.errors import (
    ConfigError,
    OwnershipError,
    ProcessorError,
    StaleGenerationError,
    StateError,
    UnreachableError,
)
from processor.metrics import Metrics, NoMetrics
from processor.protocol.partition import Partition, Phase
from processor.protocol.port import Batch, TooLargeError
from processor.protocol.stage import MAX_STAGED_BYTES

log: Final = logging.getLogger(__name__)

#: Failures in a row of one partition that end the process; a few minutes of refusals.
MAX_FAILURES: Final = 40
_FIRST_WAIT_S: Final = 0.2
_LONGEST_WAIT_S: Final = 5.0
_LATE_INTERVAL_S: Final = 0.5
#: Turns in which partitions commit, in an interval: more would wake the loop for little.
_MOST_TURNS: Final = 8
#: Partitions opened at once: each opening makes connections of its own.
_MAX_OPENINGS: Final = 8


def reopening_wait_s(number: int, failures: int) -> float:
    """Return how long to wait before a partition is opened again.

    It doubles from 0.2 s to 5 s, and is a quarter less or more, by a hash: brokers that come back
    are not asked by all partitions of all workers in the same moment, and a history that is
    played again waits as it did.

    Args:
        number: The partition's.
        failures: How often it has failed in a row, 1 or more.
    """
    spread = sha256(f"{number} {failures}".encode()).digest()[0] / 255
    return min(_FIRST_WAIT_S * 2.0 ** (failures - 1), _LONGEST_WAIT_S) * (0.75 + spread / 2)


class Partitions:
    """The partitions that the group gave to this worker.

    Args:
        make: Makes the partition of a number.
        commit_interval_s: A partition commits at most this often.
        on_fatal: Told of what no reopening can mend.
        metrics: Where rebalances are counted.
    """

    def __init__(
        self,
        make: Callable[[int], Partition],
        commit_interval_s: float,
        on_fatal: Callable[[ProcessorError], None],
        metrics: Metrics | None = None,
    ) -> None:
        self._make = make
        self._commit_interval_s = commit_interval_s
        self._on_fatal = on_fatal
        self._metrics = metrics or NoMetrics()
        self._revoked_at_s: float | None = None
        self._partitions: dict[int, Partition] = {}
        self._failures: dict[int, int] = {}
        self._commits: dict[int, asyncio.Task[None]] = {}
        self._openings: dict[int, asyncio.Task[None]] = {}
        self._is_current: Callable[[], bool] = lambda: False
        self._is_closed = False
        self._is_assigning = False
        self._slots = asyncio.Semaphore(_MAX_OPENINGS)

    def __iter__(self) -> Iterator[Partition]:
        return iter(self._partitions.values())

    @property
    def is_settled(self) -> bool:
        """Whether the group has given us what we have, and no assignment is under way."""
        return self._is_current() and not self._is_assigning

    def flowing(self) -> list[Partition]:
        """Return the partitions that records flow to: no record comes while one is yet to open."""
        if self._is_assigning:
            return []
        return [it for it in self if it.phase is Phase.READY]

    async def assign(self, numbers: set[int], is_current: Callable[[], bool]) -> None:
        """Make these partitions, and no others, ready; those held are resumed.

        Returns when each is ready or ``is_current`` says that the group has moved on. After
        ``close`` none is opened any more: the group may still rebalance while a worker ends.
        """
        if self._is_closed:
            return
        self._is_current = is_current
        gone = [self._partitions.pop(it) for it in list(self._partitions) if it not in numbers]
        await asyncio.gather(*(it.close() for it in gone))
        self._is_assigning = True
        try:
            for number in sorted(numbers):
                partition = self._partitions.setdefault(number, self._make(number))
                self._start_opening(partition)
            await asyncio.gather(*self._openings.values(), return_exceptions=True)
        finally:
            self._is_assigning = False
        if is_current() and self._revoked_at_s is not None:
            took_s = asyncio.get_running_loop().time() - self._revoked_at_s
            self._metrics.observe("processor_rebalance_duration_seconds", took_s)
            self._revoked_at_s = None

    async def revoke(self, timeout_s: float) -> None:
        """Hold every partition until the group says who has it; bounded by ``timeout_s``."""
        self._is_current = lambda: False
        if self._revoked_at_s is None and not self._is_closed:
            self._revoked_at_s = asyncio.get_running_loop().time()
            self._metrics.increment("processor_rebalances_total")
        await _cancel(self._openings)
        try:
            await asyncio.gather(*(it.hold(timeout_s) for it in self._partitions.values()))
        finally:
            # One that is still under way is in doubt, and its partition is closed.
            await _cancel(self._commits)

    async def close(self, timeout_s: float) -> None:
        """Commit what is staged and let go of everything, for good."""
        self._is_closed = True
        await self.revoke(timeout_s)
        await asyncio.gather(*(it.close() for it in self._partitions.values()))
        self._partitions.clear()

    async def feed(self, batch: Batch) -> None:
        """Hand a batch to its partition; one of an older incarnation is dropped.

        Waits for the partition's commit when too much is staged.
        """
        partition = self._partitions.get(batch.partition)
        if partition is None:
            return
        try:
            partition.feed(batch)
        except StateError as error:
            self._on_fatal(error)
            raise
        state = partition.state
        if state is not None and state.staged_bytes > MAX_STAGED_BYTES:
            await self._start_commit(partition)

    async def commit_forever(self) -> None:
        """Commit each partition once in every interval, some after others.

        All at once their transactions would wait for each other, at the broker and in our loop:
        spread over the interval each takes half the time.

        One that works off a backlog waits for ``_LATE_INTERVAL_S``: its chunks are late anyway, and
        at 0.1 s transactions cost a sixth of the CPU that would catch up.
        """
        now_s = asyncio.get_running_loop().time
        committed_at: dict[int, float] = {}
        due_s = now_s()
        while True:
            held = list(self._partitions.values())
            turns = max(1, min(len(held), _MOST_TURNS))
            for turn in range(turns):
                due_s = max(due_s + self._commit_interval_s / turns, now_s())
                await asyncio.sleep(due_s - now_s())
                for partition in held[turn::turns]:
                    waited_s = due_s - committed_at.get(partition.number, 0.0)
                    # Of intervals, the number that comes nearest.
                    is_over = waited_s + self._commit_interval_s / 2 > _LATE_INTERVAL_S
                    if partition.phase is Phase.READY and (is_over or not partition.is_late):
                        committed_at[partition.number] = due_s
                        self._start_commit(partition)

    def _start_commit(self, partition: Partition) -> asyncio.Task[None]:
        task = self._commits.get(partition.number)
        if task is None or task.done():
            task = asyncio.create_task(self._commit(partition))
            task.add_done_callback(self._end_if_failed)
            self._commits[partition.number] = task
        return task

    async def _commit(self, partition: Partition) -> None:
        try:
            if await partition.commit():
                self._failures.pop(partition.number, None)
        except (OwnershipError, UnreachableError, TooLargeError) as error:
            log.warning("commit failed, opening again", extra=_about(partition, error))
            is_ours = self._partitions.get(partition.number) is partition and self._is_current()
            if is_ours and not self._is_hopeless(partition, error):
                self._start_opening(partition)
        except (StateError, ConfigError) as error:
            self._on_fatal(error)

    def _start_opening(self, partition: Partition) -> None:
        task = self._openings.get(partition.number)
        if task is None or task.done():
            task = asyncio.create_task(self._open(partition, self._is_current))
            task.add_done_callback(self._end_if_failed)
            self._openings[partition.number] = task

    async def _open(self, partition: Partition, is_current: Callable[[], bool]) -> None:
        """Open until it is ready, the group has moved on, or it is hopeless."""
        while is_current():
            try:
                await self._open_once(partition, is_current)
            except StaleGenerationError:
                log.info("opening given up: the group has moved on", extra=_about(partition))
            except (OwnershipError, UnreachableError) as error:
                log.warning("opening failed", extra=_about(partition, error))
                if self._is_hopeless(partition, error):
                    return
            except (StateError, ConfigError) as error:
                self._on_fatal(error)
                return
            else:
                log.info("partition is ready", extra=_about(partition))
                return

    async def _open_once(self, partition: Partition, is_current: Callable[[], bool]) -> None:
        failures = self._failures.get(partition.number, 0)
        if failures:
            await asyncio.sleep(reopening_wait_s(partition.number, failures))
            # Opening fences whoever has the partition: only if the group says it is ours.
            if not await partition.is_owned():
                message = f"{partition.where}: the group does not count us as a member"
                raise UnreachableError(message)
        if partition.phase is Phase.HELD:
            await partition.resume(is_current)
            return
        async with self._slots:
            await partition.open(is_current)

    def _end_if_failed(self, task: asyncio.Task[None]) -> None:
        """End the process on what nobody expected: a partition must never just stop."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.critical("unexpected failure of a partition", exc_info=error)
            message = f"unexpected {type(error).__name__}: {error}; start again, and report this"
            self._on_fatal(StateError(message))

    def _is_hopeless(self, partition: Partition, error: ProcessorError) -> bool:
        """Count one more failure in a row, which a commit ends; too many of them are fatal."""
        failures = self._failures.get(partition.number, 0) + 1
        self._failures[partition.number] = failures
        if failures >= MAX_FAILURES:
            self._on_fatal(error)
        return failures >= MAX_FAILURES


async def _cancel(tasks: dict[int, asyncio.Task[None]]) -> None:
    """Cancel the tasks, wait until they have ended, and forget them."""
    cancelled = list(tasks.values())
    tasks.clear()
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)


def _about(partition: Partition, error: ProcessorError | None = None) -> dict[str, object]:
    """Return what a log line about a partition carries beside its text."""
    state = partition.state
    return {
        "topic": partition.topic,
        "partition": partition.number,
        "incarnation": partition.incarnation,
        "offset": state.position if state is not None else None,
        "seen": state.seen if state is not None else None,
        "error": f"{type(error).__name__}: {error}" if error is not None else None,
    }
