"""Ends of session, one behind the other, under policies that forget: the proof finds no fault."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from processor.core.policy import ChunkPolicy, OrIdle
from processor.wire_models import decode_chunk
from tests.history import Message
from tests.property.stopped_workers import Broker, config_of
from tests.unit.proof.verifying import verify


@st.composite
def logs_of_ends(draw):
    """A short log, mostly of one session: ends, records that fit and that don't, repeated ones."""
    offset, at_ms, log = 0, 100_000, []
    for _ in range(draw(st.integers(0, 10))):
        offset += draw(st.sampled_from([1, 1, 2]))
        at_ms += draw(st.sampled_from([0, 500, 2_000, 4_000, 7_000]))
        key = draw(st.sampled_from([b"a", b"a", b"a", b"b"]))
        value = draw(st.sampled_from([None, None, b"", b"x" * 30, b"y" * 44]))
        name = draw(st.sampled_from([None, b"1", b"2"]))
        headers = () if name is None else (("record-id", name),)
        log.append(Message(offset, key, value, at_ms, headers))
    return log


policies = st.builds(
    ChunkPolicy,
    max_tokens=st.just(10),
    flush=st.sampled_from([None, OrIdle(5.0)]),
    max_chunk_records=st.sampled_from([10_000, 2, 1]),
    deduplicate_records=st.sampled_from([0, 2, 1_000]),
    forget_ended_after_s=st.sampled_from([0.0, 3.0, 6.0]),
)
stops = st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=3)
#: Offsets of a batch, of a replay before open sessions are checkpointed, of what a proof reads.
sizes = st.tuples(*[st.sampled_from([1, 2, 30])] * 3)


def history(log, both, turn, cuts, size):
    """Return the chunks of workers that stop and start, from a turn on under the second policy."""
    batch, bound, _ = size
    broker = Broker(log)
    for number, (cut, is_lost) in enumerate([*sorted(cuts), (broker.end, False)]):
        config = config_of(both[number >= turn], bound=bound)
        broker.work(config, min(cut, broker.end), batch, is_lost=is_lost)
    return broker.messages()


@given(logs_of_ends(), policies, stops, sizes)
def test_ends_under_one_policy_are_proven_and_recomputed(log, policy, cuts, size):
    """Symptom: a second end, ignored or not, was called a wrong end, or "nothing closes here"."""
    chunks = history(log, (policy, policy), 0, cuts, size)
    report = verify(log, chunks, size=size[2], recompute=True, processed=99)
    assert report.is_clean, report.lines()
    assert (report.recomputed_count, report.warnings) == (len(chunks), [])


@given(logs_of_ends(), policies, policies, st.tuples(st.integers(0, 3), stops), sizes)
def test_a_change_of_what_is_forgotten_is_no_fault_and_told(log, before, after, turns, size):
    """Which end a final chunk is of is not in the log then; what is certain is still judged."""
    chunks = history(log, (before, after), *turns, size)
    report = verify(log, chunks, size=size[2], recompute=True)
    assert report.is_clean, report.lines()
    settings = {decode_chunk(it.value).policy.forget_ended_after_s for it in chunks}
    assert len(report.warnings) == (len(settings) > 1)


@given(logs_of_ends(), policies, sizes, st.data())
def test_no_final_chunk_can_be_left_out_or_added_unnoticed(log, policy, size, data):
    policy = replace(policy, deduplicate_records=0)
    chunks = history(log, (policy, policy), 0, [], size)
    finals = [at for at, it in enumerate(chunks) if b'"records":[],' in it.value]
    if not finals:
        return
    at = data.draw(st.sampled_from(finals))
    without, twice = [*chunks[:at], *chunks[at + 1 :]], [*chunks[:at], chunks[at], *chunks[at:]]
    report = verify(log, data.draw(st.sampled_from([without, twice])), size=size[2], processed=99)
    assert not report.is_clean
