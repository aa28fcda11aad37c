"""What all partitions of a worker have in common: the job of chunking."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from processor.core.policy import NEVER_MS, ChunkPolicy
from processor.core.sessions import PartitionSessions
from processor.counters import TokenCounter
from processor.protocol.changelog import PartitionEntry
from processor.protocol.dead_letter_limit import NO_LIMIT, DeadLetterLimit
from processor.protocol.job import Opened, Remedies
from processor.protocol.loading import SessionEntries
from processor.protocol.rule_change import check_unchanged, reopened
from processor.protocol.start_checks import SESSION_REMEDIES
from processor.protocol.state import PartitionState
from processor.protocol.tracing import PartitionTracing
from processor.wire_models import WirePolicy

#: A replay that takes a worker some seconds: shorter ones are not worth a checkpoint.
SHORT_REPLAY_RECORDS: Final = 200_000
#: Where sessions take turns, a chunk is open while twice as many records are read as are open, so
#: it closes before it is checkpointed; a slower session is written once in so many records, which
#: makes about a third of what is read at most. A bound below has each session written again and
#: again: 2.5 times what is read with 100,000 of them.
REPLAYED_FOR_EACH_OPEN: Final = 3


@dataclass(frozen=True, slots=True)
class ChunkerConfig:
    """What every partition of a worker has in common.

    Attributes:
        topic: The records topic.
        policy: When chunks close.
        counter: Counts their tokens.
        max_replay_records: Bound of ``seen - low``: beyond it the oldest open sessions are
            written to the changelog with their records. ``None`` for one that grows with what is
            open, see ``replay_bound``.
        max_replay_ms: The same in log time, well within the topic's retention.
        start_at_end: A first start begins at the log's end, not its start.
        accept_policy_change: Go on with another policy than the last owner's.
        dead_letter_limit: How many dead letters stop the worker.
        tracing: Traces an opening of a partition, by its number; ``None`` where tracing is off.
    """

    topic: str
    policy: ChunkPolicy
    counter: TokenCounter
    max_replay_records: int | None = None
    max_replay_ms: int = NEVER_MS
    start_at_end: bool = False
    accept_policy_change: bool = False
    dead_letter_limit: DeadLetterLimit = NO_LIMIT
    tracing: Callable[[int], PartitionTracing] | None = None

    @property
    def rule(self) -> dict[str, Any]:
        """All that chunk boundaries depend on, by name, as the changelog keeps it."""
        return WirePolicy.of(self.policy).rule(self.counter.name, self.policy.max_tokens)

    def replay_bound(self, open_record_count: int) -> int:
        """Return the bound of ``seen - low`` while so many records are open."""
        if self.max_replay_records is not None:
            return self.max_replay_records
        return max(SHORT_REPLAY_RECORDS, REPLAYED_FOR_EACH_OPEN * open_record_count)

    @property
    def remedies(self) -> Remedies:
        """What a person can do where state and log disagree."""
        return SESSION_REMEDIES

    def check(self, entry: PartitionEntry, where: str) -> None:
        """Return if chunks that are open may be gone on with; see ``check_unchanged``."""
        if not self.accept_policy_change:
            check_unchanged(entry, self.rule, where)

    def new_changelog(self) -> SessionEntries:
        """Return what the changelog is to be read into."""
        return SessionEntries(keeps_ends=self.policy.forget_ms < NEVER_MS)

    def restore(self, opened: Opened[SessionEntries]) -> PartitionState:
        """Return the state that the last owner left, judged by today's policy."""
        entry, states, changed = reopened(opened, self.rule)
        dormant = opened.changelog.dormant
        sessions = PartitionSessions(self.policy, states, entry.log_time_ms, dormant)
        state = PartitionState(self, opened.number, entry, sessions, opened.omitted)
        state.look_back(opened.log_start)
        for session in changed:
            state.put(session)
        return state
