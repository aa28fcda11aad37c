"""Whatever the core made of a log comes out again to the byte, and no other cut does."""

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from processor.core.digest import first_digest, next_digest
from processor.proof.report import FaultKind
from tests.history import log_messages
from tests.property.core_worker import Worker, clocks, message_of, worked
from tests.strategies import logs, policies
from tests.unit.proof.verifying import verify


@given(logs(), st.tuples(policies, policies), st.integers(0, 40), clocks, st.integers(1, 9))
def test_recomputation_gives_every_chunk_again(log, both, cut, clock_s, size):
    """With clock closings anywhere, and another policy from some restart on."""
    worker = worked(log, both, cut, clock_s)
    report = verify(log_messages(log), worker.messages, size=size, recompute=True)
    assert report.faults[FaultKind.DIFFERENT] == 0, report.lines()
    assert report.is_clean, report.lines()
    assert report.recomputed_count == len(worker.made)
    assert report.not_recomputed_count == 0


def resealed(chunks):
    """A session's chunks with the counters, sums and digests that their records ask for."""
    t, digest, found = 0, first_digest(chunks[0].session), []
    for chunk in chunks:
        if not chunk.records and not chunk.final:
            continue
        t, before = t + 1, digest
        digest = next_digest(before, [it.value for it in chunk.records])
        tokens = sum(it.token_count for it in chunk.records)
        found.append(replace(chunk, t=t, previous_digest=before, digest=digest, token_count=tokens))
    return found


def moved(one, other, *, is_forward):
    """Two chunks in a row with one record on the other side of the cut between them."""
    first, second = one.records, other.records
    if is_forward:
        first, second = first[:-1], (first[-1], *second)
    else:
        first, second = (*first, second[0]), second[1:]
    return replace(one, records=first), replace(other, records=second)


@given(logs(max_size=30), policies, clocks, st.data())
def test_no_cut_can_be_moved_unnoticed(log, policy, clock_s, data):
    """Even where digests, sums and counters are made to fit; but where the clock cut."""
    worker = Worker(policy)
    worker.feed(log, clock_s)
    by_session = defaultdict(list)
    for chunk, _ in worker.made:
        by_session[chunk.session].append(chunk)
    cuts = [
        (session, index, is_forward)
        for session, chunks in by_session.items()
        for index, (one, other) in enumerate(pairwise(chunks))
        for is_forward in (True, False)
        if not one.clock and (one if is_forward else other).records
    ]
    assume(cuts)
    session, index, is_forward = data.draw(st.sampled_from(cuts))
    chunks = by_session[session]
    chunks[index : index + 2] = moved(*chunks[index : index + 2], is_forward=is_forward)
    spoilt = [it for it in worker.made if it[0].session != session]
    spoilt += [(it, policy) for it in resealed(chunks)]
    messages = [message_of(*made, offset) for offset, made in enumerate(spoilt)]
    report = verify(log_messages(log), messages, size=3, recompute=True)
    assert report.faults[FaultKind.DIFFERENT] > 0
