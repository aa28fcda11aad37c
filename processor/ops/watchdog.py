"""Ends a worker that hangs in silence: a partition that stands still, or a blocked event loop.

A consumer that has died this way looks alive to everything else: its heartbeats go out, its
process runs, nothing fails. An exit is heard, and whoever supervises starts it again.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from processor.core.errors import ConfigError, UnreachableError
from processor.kafka.reading import Ends
from processor.ops.stuck import Finding, Look, StuckJudge, Trouble
from processor.protocol.partition import Partition
from processor.protocol.partitions import Partitions

log: Final = logging.getLogger(__name__)

_LOOKS: Final = 4  # until it is too long
_SHORTEST_INTERVAL_S: Final = 0.5
_LONGEST_GAP: Final = 3  # intervals
_STEPS: Final = 8
_LONGEST_STEP_S: Final = 1.0


class Watchdog:
    """Watches the partitions of a worker; used as ``await watchdog.watch_forever()``.

    Args:
        partitions: Those to watch.
        ends: Asks the broker where they end; raises ``UnreachableError`` when it does not answer.
        after_s: Seconds that a partition may stand still while it is behind.
        end: Ends the process, with a message.

    Attributes:
        stuck: What there is to say of the partitions that are stuck, as of the last look.
    """

    def __init__(
        self,
        partitions: Partitions,
        ends: Callable[[list[int]], Awaitable[Mapping[int, Ends]]],
        after_s: float,
        end: Callable[[str], None],
    ) -> None:
        self._partitions = partitions
        self._ends = ends
        self._end = end
        self._interval_s = max(after_s / _LOOKS, _SHORTEST_INTERVAL_S)
        self._judge = StuckJudge(after_s, self._interval_s * _LONGEST_GAP)
        self._told: set[tuple[int, int]] = set()
        self.stuck: list[str] = []

    async def watch_forever(self) -> None:
        """Look at the partitions from time to time."""
        while True:
            await asyncio.sleep(self._interval_s)
            await self.look(asyncio.get_running_loop().time())

    async def look(self, now_s: float) -> None:
        """Look once; end the process over a partition that is stuck."""
        partitions = {it.number: it for it in self._partitions.flowing()}
        looks = await self._looks(partitions)
        findings = self._judge.judge(now_s, looks)
        for finding in findings:
            if finding.trouble is Trouble.OPEN_TRANSACTION:
                self._tell(partitions[finding.partition], finding)
        self.stuck = [
            _message(partitions[it.partition].where, it)
            for it in findings
            if it.trouble is Trouble.STUCK
        ]
        if self.stuck:
            for number, look in looks.items():
                log.critical("partition as it stands", extra=_state(partitions[number], look))
            self._end(self.stuck[0])

    async def _looks(self, partitions: Mapping[int, Partition]) -> dict[int, Look]:
        """Return what there is to see of each, after the broker has told the ends."""
        if not partitions:
            return {}
        try:
            async with asyncio.timeout(self._interval_s):
                ends = await self._ends(list(partitions))
        except (UnreachableError, ConfigError, TimeoutError):
            log.info("no answer about the ends of partitions; looking again")
            return {}
        return {
            number: Look(it.incarnation, it.state.position, *ends[number])
            for number, it in partitions.items()
            if it.state is not None
        }

    def _tell(self, partition: Partition, finding: Finding) -> None:
        """Warn of a transaction that holds a partition up, once."""
        if (place := (finding.partition, finding.offset)) in self._told:
            return
        self._told.add(place)
        log.warning(
            "an open transaction holds a partition up: records behind it can't be read. If its "
            "producer is gone, abort it with `kafka-transactions.sh --bootstrap-server ... abort "
            "--topic %s --partition %d --start-offset %d`",
            partition.topic,
            finding.partition,
            finding.offset,
            extra={
                "topic": partition.topic,
                "partition": finding.partition,
                "offset": finding.offset,
                "for_s": finding.for_s,
            },
        )


class LoopGuard:
    """A thread that notices when the event loop runs no more.

    It counts its own wake-ups and not the time: when the process is stopped (SIGSTOP, a frozen
    container), both stand still.

    Args:
        after_s: How long the loop may be blocked.
        end: Ends the process, with a message; called in the thread.
    """

    def __init__(self, after_s: float, end: Callable[[str], None]) -> None:
        self._after_s = after_s
        self._end = end
        self._step_s = min(after_s / _STEPS, _LONGEST_STEP_S)
        self._ticks = 0
        self._ticks_seen = 0
        self._misses = 0
        self._is_over = threading.Event()

    async def tick_forever(self) -> None:
        """Show that the loop runs; the thread lives as long as this does."""
        threading.Thread(target=self._watch, name="loop-guard", daemon=True).start()
        try:
            while True:
                self.tick()
                await asyncio.sleep(self._step_s / 2)
        finally:
            self._is_over.set()

    def tick(self) -> None:
        """Say that the loop runs."""
        self._ticks += 1

    def look(self) -> None:
        """Look whether it has run since the last look, and end the process if not for too long."""
        self._misses = self._misses + 1 if self._ticks == self._ticks_seen else 0
        self._ticks_seen = self._ticks
        if self._misses * self._step_s >= self._after_s:
            self._end(
                f"the event loop was blocked for {self._after_s:g} s: something computes or waits "
                "without an await. What is not committed will be replayed: start again, and report "
                "the stacks above"
            )

    def _watch(self) -> None:
        while not self._is_over.wait(self._step_s):
            self.look()


def _message(where: str, finding: Finding) -> str:
    return (
        f"{where}: stuck at offset {finding.offset} for {finding.for_s:.0f} s, although the broker "
        "answers and has more. What is not committed will be replayed: start again, and report "
        "the stacks above"
    )


def _state(partition: Partition, look: Look) -> dict[str, object]:
    state = partition.state
    return {
        "topic": partition.topic,
        "partition": partition.number,
        "phase": partition.phase.value,
        "staged_bytes": state.staged_bytes if state is not None else None,
        "seen": state.seen if state is not None else None,
        **look._asdict(),
    }
