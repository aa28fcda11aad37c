"""One input partition: open, feed, commit, hold, resume, close.

Theory of operation. A partition has one transactional producer whose id never changes, so the
producer is the lock: whoever opens it last fences all others out, and whatever an older owner
sends afterwards is refused. The rules, and what breaks without each:

*Open*: ask the group; **fence** (waits until the last owner's transaction is resolved); only
then read the **changelog** to its high watermark (read before the fence, it misses the last
owner's last commit: records lost); check it against the world; ask the group again; take a new
**incarnation** and seek to ``low``. The committed offset is a hint: it tells a person's reset.

*Feed*: only batches of this incarnation, in order. Faust's queues still hold older ones after a
reopening, and taking one skips what lies between.

*Commit*: one transaction at a time, while the next batches are fed. Chunks, session entries,
the partition's entry and the offset land together or not at all.

*Failure*: whatever fails, the producer is thrown away and the state with it. Nothing is retried
on the same producer: a commit without an answer may have landed, and only the changelog, read
after a new fence, knows. The one thing kept is which records the topic refused as too large.

*Hold* and *resume* (a rebalance that gives the partition back): state, stage and live producer
stay together, and there is no fence on return. If anyone opened it meanwhile, our next commit is
fenced and the partition opens anew; fencing on return would hide that owner's chunks from us.

*Close*: never flushes an open chunk; output must not depend on restarts.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from processor.clock import Clock
from processor.core.errors import (
    FencedError,
    OwnershipError,
    StaleGenerationError,
    StateError,
    UnreachableError,
)
from processor.metrics import Metrics
from processor.protocol.changelog import PARTITION_KEY, decode_partition
from processor.protocol.job import Changelog, Job, JobState, Opened
from processor.protocol.loading import OwnEntry
from processor.protocol.port import Batch, PartitionBroker, TooLargeError
from processor.protocol.start_checks import first_entry, survey_until_settled, world_agrees

if TYPE_CHECKING:
    from processor.protocol.stage import Closed

#: Bound of a commit. The transaction's own timeout lies above it, so that the broker never
#: gives a transaction up that we still wait for.
COMMIT_TIMEOUT_S: Final = 15.0
#: Chunks that a person may want to look at.
RECENT_CHUNKS: Final = 20
#: A chunk is late by so much whether it is committed now or a little later.
_LATE_MS: Final = 500
_incarnations: Final = count(1)


class Phase(Enum):
    """Where a partition is in its life."""

    CLOSED = "closed"
    OPENING = "opening"
    READY = "ready"
    HELD = "held"


class Partition:
    """One input partition, as this worker has it.

    Args:
        number: Its number.
        broker: Its side of the broker.
        job: What it is opened for; the same for all partitions.
        clock: Tells when a moved position is worth a commit.
        metrics: Where counts go, once what they count is committed.

    Attributes:
        recent: The last chunks committed, each behind when (Unix milliseconds).
        progressed_at_ms: When a commit last moved it on, or it was first opened.
    """

    def __init__(
        self,
        number: int,
        broker: PartitionBroker,
        job: Job[Any],
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self.number = number
        self.phase = Phase.CLOSED
        self.incarnation = 0
        self.state: JobState | None = None
        self._broker = broker
        self._job = job
        self._clock = clock
        self._metrics = metrics
        self._omitted: frozenset[int] = frozenset()
        self._commit = asyncio.Lock()
        self._committed = 0
        self.recent: deque[tuple[int, Closed]] = deque(maxlen=RECENT_CHUNKS)
        self.progressed_at_ms = 0

    @property
    def topic(self) -> str:
        """The topic that it is one of."""
        return self._job.topic

    @property
    def where(self) -> str:
        """Topic and partition, for messages."""
        return f"{self.topic}[{self.number}]"

    @property
    def is_late(self) -> bool:
        """Whether it works off a backlog: more is left, and what came last is half a second old.

        At any pace some records arrive while others are fetched; that is no backlog.
        """
        state = self.state
        return state is None or (
            state.is_behind and self._clock.now_ms() - state.as_of_ms > _LATE_MS
        )

    async def open(self, is_current: Callable[[], bool]) -> None:
        """Fence older owners, rebuild the state, and seek to where the replay starts.

        Args:
            is_current: Tells whether the partition is still ours in the generation that
                this opening is for.

        Raises:
            StaleGenerationError: It is not.
            StateError: Changelog and log disagree; a person must decide.
            UnreachableError: The broker does not answer.
        """
        self._check(is_current)
        self.phase = Phase.OPENING
        try:
            await self._broker.fence()
            self.state = await self._restore()
            self._committed = self.state.seen
            # Kept when it is opened again and again: that is no progress.
            self.progressed_at_ms = self.progressed_at_ms or self._clock.now_ms()
            self._check(is_current)
            self.incarnation = next(_incarnations)
            await self._broker.seek(self.state.position, self.incarnation)
        except BaseException:
            await self.close()
            raise
        self.phase = Phase.READY
        self._metrics.increment("processor_partition_openings_total", kind="fresh")

    def feed(self, batch: Batch) -> bool:
        """Process a batch and return whether it was ours.

        Raises:
            StateError: The batch does not start at our position.
        """
        if self.phase is not Phase.READY or batch.incarnation != self.incarnation:
            return False
        if self.state is None:
            message = f"{self.where}: ready without a state"
            raise AssertionError(message)
        self.state.feed(batch)
        return True

    async def commit(self) -> bool:
        """Commit what is staged, if anything is worth it, and return whether that was progress.

        The first commit after an opening only makes durable where we stand; that is none.

        Raises:
            ProcessorError: It failed; state and producer are gone and the partition is closed.
        """
        async with self._commit:
            state = self.state
            if state is None or self.phase is Phase.OPENING:
                return False
            taken = state.take(self._clock.now_ms())
            if taken is None:
                return False
            transaction, stage = taken
            began_s = asyncio.get_running_loop().time()
            try:
                async with asyncio.timeout(COMMIT_TIMEOUT_S):
                    await self._broker.commit(transaction)
            except BaseException as error:
                stage.end_spans(error)
                await self._fail(state, error)
                if isinstance(error, TimeoutError):
                    message = f"{self.where}: no answer to a commit for {COMMIT_TIMEOUT_S:.0f} s"
                    raise UnreachableError(message) from error
                raise
            took_s = asyncio.get_running_loop().time() - began_s
            self._metrics.observe("processor_transaction_duration_seconds", took_s)
            now_ms = self._clock.now_ms()
            stage.tell(self._metrics, now_ms)
            self.recent.extend((now_ms, it) for it in stage.closed[-RECENT_CHUNKS:])
            is_progress = bool(transaction.output) or transaction.next_offset > self._committed
            self._committed = transaction.next_offset
            if is_progress:
                self.progressed_at_ms = now_ms
            return is_progress

    async def hold(self, timeout_s: float) -> None:
        """Stop feeding and keep all there is, for the case that the partition comes back.

        What is staged is committed first, within ``timeout_s``; a partition whose commit is in
        doubt, or that was still opening, is closed.

        Raises:
            StateError: State and records disagree, as ``commit`` finds.
            ConfigError: The broker refuses us, as ``commit`` finds.
        """
        if self.phase is not Phase.READY:
            await self.close()
            return
        self.phase, state = Phase.HELD, self.state
        try:
            async with asyncio.timeout(timeout_s):
                await self.commit()
        except (OwnershipError, UnreachableError, TooLargeError, TimeoutError):
            # The next owner finds what is durable. If commit() has closed the partition already,
            # it may be opening again by now.
            if self.state is state:
                await self.close()

    async def resume(self, is_current: Callable[[], bool]) -> None:
        """Go on with what was held: a new incarnation from our own position, no fence.

        Raises:
            StaleGenerationError: The partition is not ours any more.
            UnreachableError: The consumer does not answer.
        """
        self._check(is_current)
        if self.state is None:
            message = f"{self.where}: nothing is held"
            raise StateError(message)
        self.incarnation = next(_incarnations)
        await self._broker.seek(self.state.position, self.incarnation)
        self.phase = Phase.READY
        self._metrics.increment("processor_partition_openings_total", kind="resumed")

    async def is_owned(self) -> bool:
        """Ask the group whether we are still a member of its present generation."""
        return await self._broker.owns()

    async def close(self) -> None:
        """Drop state and producer; bounded in time, and harmless twice."""
        self.phase = Phase.CLOSED
        self.state = None
        await self._broker.discard()

    async def _fail(self, state: JobState, error: BaseException) -> None:
        self._metrics.increment("processor_transactions_total", result="failed")
        if isinstance(error, TooLargeError):
            self._omitted |= {error.offset}
        # A partition that was closed and opened again meanwhile has a producer of its own.
        if self.state is state:
            await self.close()

    def _check(self, is_current: Callable[[], bool]) -> None:
        if not is_current():
            message = f"{self.where}: the group has rebalanced since; it is not ours to open"
            raise StaleGenerationError(message)

    async def _check_nobody_else_wrote(self, changelog: Changelog) -> None:
        """Tell a fault from another owner, who may have fenced us while we were opening.

        Raises:
            FencedError: The partition's entry has changed since our fence.
        """
        now = OwnEntry()
        await self._broker.read_changelog(now)
        if now.entries.get(PARTITION_KEY) != changelog.entries.get(PARTITION_KEY):
            message = f"{self.where}: another worker has opened it since"
            raise FencedError(message)

    async def _restore(self) -> JobState:
        changelog = self._job.new_changelog()
        await self._broker.read_changelog(changelog)
        entry = decode_partition(changelog.entries, self.where, self._job.remedies.lost)
        survey = await survey_until_settled(self._broker, entry)
        try:
            world_agrees(entry, survey, self._job, self.where)
        except StateError:
            await self._check_nobody_else_wrote(changelog)
            raise
        return self._job.restore(
            Opened(
                self.number,
                self.where,
                entry or first_entry(survey, self._job),
                changelog,
                survey.log_start,
                self._omitted,
            )
        )
