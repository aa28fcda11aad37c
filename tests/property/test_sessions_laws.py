"""Laws of a partition's sessions: interleaving, restart, time."""

from hypothesis import given
from hypothesis import strategies as st

from processor.core.accumulator import SessionAccumulator
from processor.core.digest import first_digest
from processor.core.policy import NEVER_MS, ChunkPolicy, OrIdle
from processor.core.records import Run
from processor.core.session_state import SessionState
from processor.core.sessions import PartitionSessions
from tests.builders import record
from tests.strategies import BUDGET, logs, policies


def feed(sessions, log):
    """Feed a log of ``(record, is_end)`` and return the chunks."""
    chunks = []
    for one, is_end in log:
        if is_end:
            chunks += sessions.end(one.session, one.offset, one.timestamp_ms)
        else:
            chunks += sessions.push(one)
    return chunks


def of(session, chunks):
    return [chunk for chunk in chunks if chunk.session == session]


@given(logs(), policies)
def test_interleaving_changes_nothing_within_a_session(log, policy):
    """Each session alone, at the log times of the whole partition, gives the same chunks."""
    together = feed(PartitionSessions(policy), log)
    for session in {one.session for one, _ in log}:
        alone, log_time_ms, chunks = SessionAccumulator(SessionState.new(session), policy), 0, []
        for one, is_end in log:
            log_time_ms = max(log_time_ms, one.timestamp_ms)
            if one.session == session:
                chunks += (
                    alone.end(one.offset, log_time_ms) if is_end else alone.push(one, log_time_ms)
                )
        assert of(session, together) == chunks


@given(logs(), policies, st.integers(0, 40))
def test_snapshot_and_restore_at_any_point_changes_nothing(log, policy, cut):
    first = PartitionSessions(policy)
    chunks = feed(first, log[:cut])
    states = [first.state(session) for session in first]
    second = PartitionSessions(policy, states, first.log_time_ms)
    assert chunks + feed(second, log[cut:]) == feed(PartitionSessions(policy), log)


@given(
    logs(), policies, st.integers(0, 40), st.lists(st.integers(0, 40)), st.sets(st.integers(0, 40))
)
def test_replay_from_the_low_water_mark_changes_nothing(log, policy, cut, checkpoints, drops):
    """A crash at any point: what is left is the entries and the log from the mark on."""
    entries, chunks, first = {}, [], PartitionSessions(policy)
    for index, item in enumerate(log[:cut]):
        for chunk in feed(first, [item]):
            chunks.append(chunk)
            entries[chunk.session] = SessionState.after(chunk)
        for _ in range(checkpoints.count(index)):
            state = first.checkpoint()
            if state is not None:
                entries[state.session] = state
        if index in drops:
            for session in first.drop_forgotten():
                del entries[session]
    read = (
        log[cut - 1][0].offset + 1
        if 0 < cut <= len(log)
        else (log[-1][0].offset + 1 if log and cut else 0)
    )
    low = first.low_water(read)
    second = PartitionSessions(policy, entries.values(), low.log_time_ms)
    for item in log:
        one, is_end = item
        # An end that was ignored, of a session that is dropped since.
        is_passed = is_end and one.offset < read and second.state(one.session) is None
        if is_passed and one.offset >= low.offset and policy.forget_ended_after_s:
            second.pass_by(one.timestamp_ms)
        elif one.offset >= low.offset:
            chunks += feed(second, [item])
    assert chunks == feed(PartitionSessions(policy), log)


@given(logs(), policies, st.sets(st.integers(0, 40)))
def test_dropping_what_is_forgotten_changes_nothing(log, policy, drops):
    sessions, chunks = PartitionSessions(policy), []
    for index, item in enumerate(log):
        chunks += feed(sessions, [item])
        if index in drops:
            dropped = sessions.drop_forgotten()
            assert all(sessions.state(it) is None for it in dropped)
            assert not dropped or policy.forget_ended_after_s
    assert chunks == feed(PartitionSessions(policy), log)


@given(logs(names=("a",)), policies)
def test_a_session_begins_anew_only_after_its_end_and_the_time_of_the_policy(log, policy):
    ended_at_ms, t = None, 0
    for chunk in feed(PartitionSessions(policy), log):
        if chunk.t == 1 and t:
            assert chunk.previous_digest == first_digest("a")
            begins_at_ms = max(it.timestamp_ms for it, _ in log if it.offset < chunk.next_offset)
            assert begins_at_ms - ended_at_ms > policy.forget_ms
        else:
            assert chunk.t == t + 1
        t, ended_at_ms = chunk.t, chunk.ended_at_ms if chunk.final else None


def test_what_comes_long_after_an_end_begins_anew_and_what_comes_soon_goes_on():
    sessions = PartitionSessions(ChunkPolicy(BUDGET, forget_ended_after_s=10.0))
    log = [
        (record(offset=0, at_s=0), False),
        (record(offset=1, at_s=1), True),
        (record(offset=2, at_s=11), False),
        (record(offset=3, at_s=12), True),
        (record(offset=4, at_s=23), False),
        (record(offset=5, at_s=24), True),
        (record(session="s2", offset=6, at_s=34), False),
    ]
    assert [(it.t, it.final) for it in feed(sessions, log)] == [(1, True), (2, True), (1, True)]
    assert sessions.drop_forgotten() == []
    feed(sessions, [(record(session="s2", offset=7, at_s=35), False)])
    assert sessions.drop_forgotten() == ["s1"]


def test_an_ended_session_stays_while_a_record_before_its_end_is_open():
    """Else a replay would begin before records that are chunked, and chunk them once more."""
    sessions = PartitionSessions(ChunkPolicy(BUDGET, forget_ended_after_s=10.0))
    feed(sessions, [(record(session="open", offset=0, at_s=0), False)])
    feed(sessions, [(record(offset=1, at_s=1), False), (record(offset=2, at_s=2), True)])
    feed(sessions, [(record(session="other", offset=3, at_s=99), False)])
    assert sessions.drop_forgotten() == []
    sessions.end("open", 4, 99_000)
    assert sessions.drop_forgotten() == ["s1"]


@given(logs(), policies)
def test_the_low_water_mark_is_the_first_record_in_no_chunk(log, policy):
    sessions, chunked, seen = PartitionSessions(policy), set(), []
    for one, is_end in log:
        if not is_end:
            seen.append(one.offset)
        for chunk in feed(sessions, [(one, is_end)]):
            chunked |= {record.offset for record in chunk.records}
        open_offsets = [offset for offset in seen if offset not in chunked]
        assert sessions.low_water(one.offset + 1).offset == min([*open_offsets, one.offset + 1])
        assert sessions.open_record_count == len(open_offsets)


@given(
    logs(ends=False),
    st.sampled_from(
        [
            ChunkPolicy(BUDGET, flush=OrIdle(5.0)),
            ChunkPolicy(BUDGET, flush=OrIdle(5.0), max_age_s=7.0),
        ]
    ),
)
def test_a_backlog_is_cut_by_log_time_as_its_traffic_was(log, policy):
    """A live worker closes by the clock just before each record; a backlog must cut the same."""
    live, chunks = PartitionSessions(policy), []
    for one, _ in log:
        chunks += live.close_due(max(live.log_time_ms, one.timestamp_ms))
        chunks += live.push(one)
    backlog = feed(PartitionSessions(policy), log)
    for session in "abc":
        cut = [chunk.records for chunk in of(session, chunks)]
        again = [chunk.records for chunk in of(session, backlog)]
        # The clock closes a silent session's last chunk, which the log alone leaves open.
        assert cut[: len(again)] == again
        assert len(cut) <= len(again) + 1


def by_runs(log, before_ms):
    """Group a stretch of the log without ends as a batch is, and tell its last log time."""
    runs = {}
    for one, _ in log:
        run = runs.setdefault(one.session, Run(one.session, [], [], []))
        run.records.append(one)
        run.before_ms.append(before_ms)
        before_ms = max(before_ms, one.timestamp_ms)
        run.times_ms.append(before_ms)
    return runs.values(), before_ms


@given(logs(ends=False), policies, st.lists(st.integers(0, 40)), st.integers(0, 40))
def test_a_batch_by_sessions_is_as_its_records_one_by_one(log, policy, cuts, replayed):
    """Chunks and their order, states, low-water mark and deadlines."""
    single, grouped = PartitionSessions(policy), PartitionSessions(policy)
    chunks, chunks_again, start = [], [], 0
    for cut in [*sorted(cuts), len(log)]:
        chunks += feed(single, log[start:cut])
        # As in a replay, a batch may begin with what is accounted for already.
        stretch = log[max(0, start - replayed) : cut]
        start = max(start, cut)
        chunks_again += grouped.feed(*by_runs(stretch, grouped.log_time_ms))
        assert grouped.low_water(1 << 40) == single.low_water(1 << 40)
        assert grouped.next_deadline_ms == single.next_deadline_ms
        assert grouped.open_record_count == single.open_record_count
    assert chunks_again == chunks
    for session in "abc":
        assert grouped.state(session) == single.state(session)
    assert sorted(grouped.close_due(1 << 50), key=str) == sorted(single.close_due(1 << 50), key=str)


@given(logs(ends=False, max_size=60), policies, st.integers(0, 60), st.integers(0, 60))
def test_checkpoints_between_batches_keep_the_low_water_mark_in_order(log, policy, cut, again):
    single, grouped = PartitionSessions(policy), PartitionSessions(policy)
    for part in (log[:cut], log[cut : cut + again], log[cut + again :]):
        feed(single, part)
        grouped.feed(*by_runs(part, grouped.log_time_ms))
        assert grouped.low_water(1 << 40) == single.low_water(1 << 40)
        assert grouped.checkpoint() == single.checkpoint()
        assert grouped.low_water(1 << 40) == single.low_water(1 << 40)


@given(logs(), policies)
def test_what_is_due_next_is_the_earliest_deadline(log, policy):
    sessions = PartitionSessions(policy)
    for item in log:
        feed(sessions, [item])
        held = [SessionAccumulator(sessions.state(name), policy) for name in sessions]
        assert sessions.next_deadline_ms == min([it.deadline_ms for it in held], default=NEVER_MS)
        due = sessions.next_deadline_ms
        assert list(sessions.close_due(due)) == []


@given(logs(), policies)
def test_the_clock_closes_all_that_is_due_and_marks_it(log, policy):
    sessions = PartitionSessions(policy)
    feed(sessions, log)
    due = [
        name
        for name in sessions
        if SessionAccumulator(sessions.state(name), policy).deadline_ms < NEVER_MS
    ]
    chunks = list(sessions.close_due(1 << 50))
    assert sorted(chunk.session for chunk in chunks) == sorted(due)
    assert all(chunk.clock and not chunk.final for chunk in chunks)
