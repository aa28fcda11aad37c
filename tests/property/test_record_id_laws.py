"""Records that repeat another by their id are left out, the same ones whatever happens."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from processor.protocol.changelog import decode_partition
from processor.wire_models import decode_chunk
from tests.history import Message, chunks_of, repeated_of
from tests.property.stopped_workers import Broker, config_of
from tests.strategies import logs, policies
from tests.unit.proof.verifying import verify

ids = st.sampled_from([None, b"", b"1", b"2", b"3", b"4"])
sizes = st.sampled_from([0, 1, 3, 10, 1000])


@st.composite
def logs_with_ids(draw):
    """A log in which producers send twice, ends and records without a session among them."""
    messages = []
    for record, is_end in draw(logs()):
        key = draw(st.sampled_from([record.session.encode()] * 9 + [None, b"\xff"]))
        name = draw(ids)
        headers = () if name is None else (("record-id", b"0"), ("record-id", name))
        value = None if is_end else record.value
        messages.append(Message(record.offset, key, value, record.timestamp_ms, headers))
    return messages


stops = st.lists(st.tuples(st.integers(0, 80), st.booleans()), max_size=4)
#: Records of a batch, and of a replay before open sessions are checkpointed.
batches = st.tuples(st.integers(1, 30), st.sampled_from([0, 3, 1000]))


@given(logs_with_ids(), policies, sizes, stops, batches)
def test_a_naive_reference_gives_the_same_chunks_wherever_workers_stop(
    log, policy, size, cuts, how
):
    policy, (batch, bound) = replace(policy, deduplicate_records=size), how
    broker = Broker(log)
    for cut, is_lost in [*sorted(cuts), (broker.end, False)]:
        broker.work(config_of(policy, bound=bound), min(cut, broker.end), batch, is_lost=is_lost)
    made, expected = broker.messages(), chunks_of(log, policy)
    assert [(it.key, it.value) for it in made] == [(it.key, it.value) for it in expected]
    repeated = repeated_of(log, size)
    assert broker.counts.duplicates == len(repeated)
    assert broker.metrics.counts["processor_duplicates_total",] == len(repeated)


@given(logs_with_ids(), policies, sizes, st.integers(1, 9))
def test_the_proof_calls_nothing_missing_that_was_left_out(log, policy, size, batch):
    policy = replace(policy, deduplicate_records=size)
    chunks = chunks_of(log, policy)
    report = verify(log, chunks, size=batch, recompute=True)
    assert report.is_clean, report.lines()
    assert report.recomputed_count == len(chunks)
    if chunks and size:
        assert report.duplicate_count == len(repeated_of(log, size))


changes = st.tuples(st.tuples(policies, sizes), st.tuples(policies, sizes), st.integers(0, 4))


@given(logs_with_ids(), changes, stops, batches)
def test_another_window_may_be_accepted_anywhere(log, change, cuts, how):
    """What is left out may be judged anew, but no state is in doubt, and the proof stays clean."""
    *both, turns = change
    configs = [
        config_of(replace(policy, deduplicate_records=size), bound=how[1]) for policy, size in both
    ]
    broker = Broker(log)
    for turn, (cut, is_lost) in enumerate([*sorted(cuts), (broker.end, False)]):
        broker.work(configs[turn >= turns], min(cut, broker.end), how[0], is_lost=is_lost)
    report = verify(log, broker.messages(), size=how[0], recompute=True)
    assert report.is_clean, report.lines()


@given(logs_with_ids(), policies, sizes, st.tuples(*[st.integers(0, 80)] * 2), batches)
def test_a_log_whose_start_is_deleted_stops_no_worker_and_loses_nothing(
    log, policy, size, cuts, how
):
    """Retention took what a record of the replay repeats: then that one is in a chunk too."""
    config = config_of(replace(policy, deduplicate_records=size), bound=how[1])
    broker = Broker([*log, Message(1000, b"a", None), Message(1001, b"b", None)])
    broker.work(config, min(cuts[0], broker.end), how[0])
    broker.log_start = min(cuts[1], decode_partition(broker.entries, "records[0]").low)
    whole, broker.log = broker.log, [it for it in broker.log if it.offset >= broker.log_start]
    broker.log += [Message(1002, b"c", None)]
    broker.work(config, broker.end, how[0])
    chunked = [it for message in broker.messages() for it in decode_chunk(message.value).records]
    there = {it.offset for it in chunked}
    assert len(chunked) == len(there)
    records = {it.offset for it in whole if it.value is not None and it.key not in {None, b"\xff"}}
    assert records - repeated_of(whole, size) <= there <= records
