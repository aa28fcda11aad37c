"""Whatever the core made of a log comes out again to the byte, and no other cut does."""

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from processor.core.digest import first_digest, next_digest
from processor.core.session_state import SessionState
from processor.core.sessions import PartitionSessions
from processor.counters import CharsOverFour, count_tokens
from processor.proof.report import FaultKind
from processor.wire import ChunkEncoder, chunk_headers, read_value
from tests.history import Message, log_messages
from tests.strategies import logs, policies
from tests.unit.proof.verifying import verify


def counted(record):
    """The record as the worker reads it."""
    text, carried, size_bytes = read_value(record.value)
    (tokens,) = count_tokens(CharsOverFour(), [text], 5000)
    return record._replace(token_count=tokens, carried=carried, size_bytes=size_bytes)


def message_of(chunk, policy, offset):
    encoder = ChunkEncoder(policy, CharsOverFour.name, "records", 0)
    headers = tuple(chunk_headers(chunk))
    return Message(offset, chunk.session.encode(), encoder.encode(chunk), 0, headers)


class Worker:
    """What a worker makes of a log: chunks, each with the policy that it was cut by."""

    def __init__(self, policy):
        self.made, self._entries = [], {}
        self._policy, self._sessions = policy, PartitionSessions(policy)

    def feed(self, items, clock_s=()):
        """Feed a stretch; behind the items of these indexes the clock is so many seconds on."""
        clocks = dict(clock_s)
        for index, (record, is_end) in enumerate(items):
            at = (record.offset, record.timestamp_ms)
            sessions = self._sessions
            self._keep(
                sessions.end(record.session, *at) if is_end else sessions.push(counted(record))
            )
            if index in clocks:
                self._keep(sessions.close_due(sessions.log_time_ms + 1000 * clocks[index]))

    def restart(self, log, position, policy):
        """Go on by another policy, from what is durable."""
        low = self._sessions.low_water(position)
        self._policy = policy
        self._sessions = PartitionSessions(policy, self._entries.values(), low.log_time_ms)
        self.feed([it for it in log if low.offset <= it[0].offset < position])

    def _keep(self, chunks):
        for chunk in chunks:
            self._entries[chunk.session] = SessionState.after(chunk)
            self.made.append((chunk, self._policy))

    @property
    def messages(self):
        return [message_of(*made, offset) for offset, made in enumerate(self.made)]


clocks = st.lists(st.tuples(st.integers(0, 40), st.sampled_from([3, 6, 30])), max_size=6)


def worked(log, both, cut, clock_s):
    """Return a worker that went through a log, by the second policy from ``cut`` on."""
    policy, later = both
    worker = Worker(policy)
    worker.feed(log[:cut], clock_s)
    if cut < len(log):
        worker.restart(log, log[cut][0].offset, later)
        worker.feed(log[cut:], clock_s)
    return worker


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
