"""Mutations of who may write: fence, changelog, failed commits, rebalances."""

from dataclasses import replace

from processor.core.errors import FencedError, UnreachableError
from processor.protocol import start_checks
from processor.protocol.partition import Partition, Phase
from processor.protocol.port import ResentCommitError
from tests.simulation.broker import CHANGELOG
from tests.simulation.client import SimulatedPartitionBroker
from tests.simulation.history import ANSWERS_LOST, RESENT
from tests.simulation.mutations import mutation


@mutation()
def changelog_read_before_the_fence():
    """It misses the last commit of the owner before."""
    fence, early = SimulatedPartitionBroker.fence, {}

    async def fence_late(self):
        changelog = self.partition.logs[CHANGELOG]
        found, _ = changelog.read(0, changelog.stable_end)
        early[self] = found
        await fence(self)

    async def read_changelog(self, taker):
        taker.take(early[self])

    return [
        (SimulatedPartitionBroker, "fence", fence_late),
        (SimulatedPartitionBroker, "read_changelog", read_changelog),
    ]


@mutation()
def no_fence():
    """Each worker has a transactional id of its own: nobody is ever refused."""
    original = SimulatedPartitionBroker.__init__

    def init(self, process, partition, member):
        original(self, process, partition, member)
        self.transactional_id += f"-{process.name}"

    return [(SimulatedPartitionBroker, "__init__", init)]


@mutation()
def changelog_read_uncommitted():
    """It holds what was aborted."""

    def read_entries(self, position, end):
        changelog = self.partition.logs[CHANGELOG]
        return changelog.everything(end)[position:], end

    return [(SimulatedPartitionBroker, "read_entries", read_entries)]


@mutation()
def changelog_read_to_the_last_stable_offset():
    """Someone else's open transaction hides what was committed behind it."""

    def changelog_end(self):
        return self.partition.logs[CHANGELOG].stable_end

    return [(SimulatedPartitionBroker, "changelog_end", changelog_end)]


# Commits and their failures.


@mutation()
def retry_after_fenced():
    """Who was fenced takes the partition back and commits what he has staged."""
    return [(SimulatedPartitionBroker, "commit", _committing_again(FencedError))]


@mutation(network=ANSWERS_LOST)
def retry_after_no_answer():
    """The commit may have landed."""
    return [(SimulatedPartitionBroker, "commit", _committing_again(UnreachableError))]


def _committing_again(after):
    original = SimulatedPartitionBroker.commit

    async def commit(self, transaction):
        try:
            await original(self, transaction)
        except after:
            await self.fence()
            await original(self, transaction)

    return commit


@mutation()
def state_kept_after_a_failed_commit():
    """A new producer, the old state: what was staged is lost."""
    original = Partition.open

    async def close(self):
        self.phase = Phase.CLOSED
        await self._broker.discard()

    async def open_(self, is_current):
        kept = self.state
        await original(self, is_current)
        if kept is not None:
            self.state = kept
            await self._broker.seek(kept.position, self.incarnation)

    return [(Partition, "close", close), (Partition, "open", open_)]


@mutation(network=RESENT)
def resent_commit_ignored():
    """A late copy of the request commits the next transaction half-written."""
    original = SimulatedPartitionBroker.commit

    async def commit(self, transaction):
        try:
            await original(self, transaction)
        except ResentCommitError:
            return

    return [(SimulatedPartitionBroker, "commit", commit)]


@mutation()
def offset_committed_with_a_refused_chunk():
    """A refused message fails only its own future."""
    return [(SimulatedPartitionBroker, "raise_refused", lambda _self, _results: None)]


@mutation()
def fenced_partition_never_opened_again():
    """A transaction that timed out fences too; nobody else comes for it."""
    original = Partition.commit

    async def commit(self):
        try:
            return await original(self)
        except FencedError:
            return False

    return [(Partition, "commit", commit)]


@mutation()
def old_offset_believed_at_once():
    """A coordinator that has just moved lags for a while; nobody has reset the group."""
    return [(start_checks, "_SETTLE_TRIES", 0)]


# Rebalances and incarnations.


@mutation()
def batch_of_an_older_incarnation_accepted():
    """Queues still hold what was fetched before a reopening."""
    original = Partition.feed

    def feed(self, batch):
        return original(self, replace(batch, incarnation=self.incarnation))

    return [(Partition, "feed", feed)]


@mutation()
def batch_accepted_wherever_it_starts():
    """The same, without the check of positions that stands behind it."""
    original = Partition.feed

    def feed(self, batch):
        position = self.state.position if self.state is not None else 0
        here = replace(batch, incarnation=self.incarnation, first_offset=position)
        return original(self, here)

    return [(Partition, "feed", feed)]


@mutation(plot="there and back")
def fence_on_return():
    """State kept without its producer: a new fence hides who had it meanwhile."""
    original = Partition.resume

    async def resume(self, is_current):
        await self._broker.fence()
        await original(self, is_current)

    return [(Partition, "resume", resume)]


@mutation()
def state_held_with_a_commit_in_doubt():
    """The commit may have landed, or not: neither way does the state know."""
    original_hold, original_resume = Partition.hold, Partition.resume

    async def hold(self, timeout_s):
        kept, was_ready = self.state, self.phase is Phase.READY
        await original_hold(self, timeout_s)
        if was_ready and self.phase is Phase.CLOSED:
            self.state, self.phase = kept, Phase.HELD

    async def resume(self, is_current):
        if self._broker.producer is None:
            await self._broker.fence()
        await original_resume(self, is_current)

    return [(Partition, "hold", hold), (Partition, "resume", resume)]


@mutation(first_seed=200, plot="there and back", learns_late=True)
def another_owner_taken_for_a_fault():
    """Who was fenced while opening finds a world that does not fit: no person has done that."""

    async def check_nothing(self, changelog):
        pass

    return [(Partition, "_check_nobody_else_wrote", check_nothing)]
