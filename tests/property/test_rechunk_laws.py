"""The same rule moves nothing, and another one gives what the chunker itself makes by it."""

from dataclasses import replace
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from processor.core.policy import OrIdle
from processor.core.sessions import PartitionSessions
from processor.proof.rechunk import Cut, Other, Rechunking
from processor.proof.seen import Seen
from tests.history import QUARTERS
from tests.property.core_worker import clocks, counted, worked
from tests.strategies import BUDGET, logs, policies


def rechunked(cuts, other):
    rechunking = Rechunking(other)
    changes = [change for cut in cuts for change in rechunking.take(cut)]
    changes += rechunking.finish()
    return rechunking.diff, changes


@given(logs(), st.tuples(policies, policies), st.integers(0, 40), clocks)
def test_nothing_else_moves_nothing(log, both, cut, clock_s):
    """With clock closings anywhere, and another policy from some restart on."""
    worker = worked(log, both, cut, clock_s)
    diff, changes = rechunked([Cut.of_seen(Seen(it)) for it in worker.messages], Other())
    assert changes == []
    assert diff.old == diff.new
    assert diff.unchanged_count == diff.kept_count == diff.old.chunk_count == len(worker.made)
    assert diff.removed_count == diff.added_count == 0


def chunks_of(log, policy):
    """The chunks of a log whose end closes all of them."""
    sessions, made = PartitionSessions(policy), []
    for record, is_end in log:
        at = (record.session, record.offset, record.timestamp_ms)
        made += sessions.end(*at) if is_end else sessions.push(counted(record))
    return made + sessions.finish()


def places(chunks):
    return {
        (it.session, it.records[0].offset, it.records[-1].offset, it.token_count)
        for it in chunks
        if it.records
    }


def assert_diff_leads_to(expected, made, policy, other):
    """The old chunks without the removed ones and with the added ones are the expected ones."""
    cuts = [Cut.of_chunk(it, policy, QUARTERS.name) for it in made]
    diff, changes = rechunked(cuts, other)
    found = places(made)
    for session, is_added, span in changes:
        place = (session, span.first_offset, span.last_offset, span.token_count)
        if span.record_count:
            assert (place in found) != is_added
            found ^= {place}
    assert found == places(expected)
    assert diff.new.chunk_count == len(expected)
    assert diff.new.record_count == diff.old.record_count
    assert diff.old.chunk_count == diff.kept_count + diff.removed_count
    assert diff.new.chunk_count == diff.kept_count + diff.added_count


@given(logs(), policies, st.integers(1, 3 * BUDGET))
def test_another_budget_gives_what_the_chunker_makes_by_it(log, policy, budget):
    """Without rules of time, of which nothing is asked here."""
    policy = replace(policy, flush=None, max_age_s=0)
    other = replace(policy, max_tokens=budget, flush=None)
    made, expected = chunks_of(log, policy), chunks_of(log, other)
    assert_diff_leads_to(expected, made, policy, Other(max_tokens=budget))


@given(
    logs(ends=False), policies, st.sampled_from([0.0, 1.0, 5.0, 20.0]), st.sampled_from([0.0, 12.0])
)
def test_other_times_give_what_the_chunker_makes_by_them(log, policy, idle_s, age_s):
    """Where timestamps do not step back, so that they are the log times, and without ends."""
    highest = accumulate((it.timestamp_ms for it, _ in log), max)
    log = [
        (it._replace(timestamp_ms=at), is_end)
        for (it, is_end), at in zip(log, highest, strict=True)
    ]
    policy = replace(policy, flush=None)
    flush = OrIdle(idle_s) if idle_s else None
    other = replace(policy, flush=flush, max_age_s=age_s)
    made, expected = chunks_of(log, policy), chunks_of(log, other)
    assert_diff_leads_to(expected, made, policy, Other(idle_s=idle_s, max_age_s=age_s))
