"""Mutations of time: when the clock closes a chunk, and which time a record has."""

from dataclasses import replace

from processor.core import flush
from processor.core.sessions import PartitionSessions
from processor.protocol import chunking, rule_change
from processor.protocol.changelog import (
    decode_sessions,
)
from processor.protocol.partition import Partition
from processor.protocol.state import PartitionState
from tests.simulation.mutations import mutation
from tests.simulation.worker import GRACE_MS, Worker


@mutation()
def clock_closings_while_behind():
    original = PartitionState.feed

    def feed(self, batch):
        head = batch.head and batch.head._replace(high_watermark=0)
        original(self, replace(batch, head=head))

    return [(PartitionState, "feed", feed)]


@mutation()
def head_by_the_last_stable_offset():
    """An open transaction hides a record that came in time."""

    def high_watermark(self, records):
        return records.stable_end

    return [(Worker, "high_watermark", high_watermark)]


@mutation(first_seed=500, skew_ms=4900, backward=0, plot="quiet")
def head_by_the_time_of_processing():
    """What came since the fetch was answered is not looked at."""
    original = Partition.feed

    def feed(self, batch):
        now_ms = self._clock.now_ms() - GRACE_MS
        head = batch.head and batch.head._replace(asked_at_ms=now_ms)
        return original(self, replace(batch, head=head))

    return [(Partition, "feed", feed)]


@mutation(skew_ms=4900, backward=0, plot="quiet")
def no_grace_for_clock_skew():
    original = PartitionState.feed

    def feed(self, batch):
        head = batch.head and batch.head._replace(asked_at_ms=batch.head.asked_at_ms + GRACE_MS)
        original(self, replace(batch, head=head))

    return [(PartitionState, "feed", feed)]


@mutation()
def restored_records_count_as_new():
    """Their deadlines start anew."""

    def renewed(entries, where):
        for state in decode_sessions(entries, where):
            yield replace(state, last_at_ms=state.last_at_ms + 20_000)

    return [(rule_change, "decode_sessions", renewed)]


@mutation(first_seed=200, skew_ms=0, backward=0.4, plot="quiet")
def log_time_not_kept_beside_the_mark():
    """A replay sees another largest timestamp than the first pass."""

    def without(policy, states, log_time_ms, dormant):
        return PartitionSessions(policy, states, 0, dormant)

    return [(chunking, "PartitionSessions", without)]


@mutation()
def tokens_asked_before_deadlines():
    late, other = flush.FLUSH_RULES[:2], flush.FLUSH_RULES[2:]
    return [(flush, "FLUSH_RULES", (*other, *late))]
