"""What a partition keeps, does and writes as its sessions grow long, many and silent."""

import gc
import sys

import pytest

from processor.core.accumulator import SessionAccumulator
from processor.core.chunks import OpenChunk
from processor.core.policy import ChunkPolicy, OrIdle
from processor.core.records import Record
from processor.core.session_state import SessionState
from processor.protocol import chunking
from processor.protocol import state as state_module
from processor.protocol.changelog import PARTITION_KEY, decode_sessions, encode_session
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.job import Opened
from processor.protocol.port import Batch, Head, Survey
from processor.protocol.start_checks import first_entry
from tests.builders import WordCounter
from tests.history import Message

POLICY = ChunkPolicy(max_tokens=4, flush=OrIdle(30))


class Growing:
    """A partition's state at the end of its log, and what it has written."""

    def __init__(self, policy=POLICY):
        config = ChunkerConfig("records", policy, WordCounter())
        entry = first_entry(Survey(1, 0, 0, None), config)
        opened = Opened(0, "records[0]", entry, config.new_changelog(), 0, frozenset())
        self.state = config.restore(opened)
        self.chunk_count = self.entry_count = self.checkpointed = 0

    def feed(self, keys, at_s=0, value=b"w"):
        """Feed a record of one token for each key; without a value, ends."""
        first = self.state.position
        records = [
            Message(first + n, b"%012d" % key, value, at_s * 1000) for n, key in enumerate(keys)
        ]
        stop = first + len(records)
        head = Head(at_s * 1000, stop)
        self.state.feed(Batch(0, 1, first, stop, records, at_s * 1000, head))

    def take(self):
        """Take what is staged; return the chunks' sessions."""
        taken = self.state.take(0)
        if taken is None:
            return []
        entries = {key: it for key, it in taken[0].entries.items() if key != PARTITION_KEY}
        states = list(decode_sessions(entries, "c[0]"))
        self.chunk_count += len(taken[1].closed)
        self.entry_count += len(entries)
        self.checkpointed += sum(len(it.records) for it in states)
        return [(it.session, it.t, it.clock) for it in taken[1].closed]


def calls_of(call):
    """Count the functions called, those in C among them."""
    count = 0

    def note(_frame, event, _arg):
        nonlocal count
        count += event in {"call", "c_call"}

    gc.disable()  # Hypothesis has it call functions
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def kept():
    """Count what there is of open records anywhere."""
    gc.collect()
    kinds = (Record, OpenChunk, SessionAccumulator)
    return sum(isinstance(it, kinds) for it in gc.get_objects())


def test_a_record_takes_as_many_steps_in_a_long_session_as_in_a_short_one():
    it = Growing()
    it.feed([1] * 400)
    it.take()
    few = calls_of(lambda: it.feed([1] * 400))
    it.take()
    it.feed([1] * 8000)
    it.take()
    assert calls_of(lambda: it.feed([1] * 400)) == few


@pytest.mark.parametrize("per_session", [1, 3])
def test_a_record_takes_as_many_steps_whether_few_sessions_are_open_or_many(per_session):
    it, asked = Growing(), list(range(100)) * per_session
    it.feed(range(100))
    few = calls_of(lambda: it.feed(asked))
    it = Growing()
    it.feed(range(5000))
    assert calls_of(lambda: it.feed(asked)) == few


def test_a_record_takes_as_many_steps_whether_few_sessions_are_silent_or_many():
    def steps(sessions):
        it = Growing()
        it.feed(range(sessions))
        it.feed(range(sessions), value=None)
        it.take()
        return calls_of(lambda: it.feed(range(100)))

    # But for a second session with the same part of its hash, which is looked at and passed by.
    assert steps(5000) == pytest.approx(steps(1000), rel=0.01)


def test_nothing_of_a_record_stays_once_its_session_has_ended_and_its_chunk_is_taken():
    before, it = kept(), Growing()
    for _ in range(3):
        it.feed(range(500))
        it.feed(range(500), value=None)
        it.take()
    assert kept() == before
    assert it.state.sessions.open_session_count == it.state.sessions.open_record_count == 0
    assert it.state.sessions.low_water(1 << 40).offset == 1 << 40


def test_a_session_is_no_larger_in_memory_after_many_chunks():
    it = Growing()
    it.feed(range(100))
    it.feed(range(100), value=None)
    it.take()
    packed = it.state.sessions.dormant_bytes
    for _ in range(15):
        it.feed(list(range(100)) * 9)
        it.feed(range(100), value=None)
        it.take()
    assert it.state.sessions.dormant_bytes == packed


def test_the_changelog_gets_one_small_entry_for_a_chunk_and_nothing_for_a_record():
    it = Growing()
    for _ in range(40):
        it.feed(range(200))
        it.take()
    assert it.entry_count == it.chunk_count == 1800
    assert it.checkpointed == 0
    assert len(encode_session(SessionState("s", 1 << 40, bytes(32), 1 << 62))) < 60


def test_sessions_that_take_turns_are_not_checkpointed_however_many_are_open(monkeypatch):
    """A fixed bound wrote all open records of a session again with every one or two new ones."""
    monkeypatch.setattr(chunking, "SHORT_REPLAY_RECORDS", 100)
    it = Growing()
    for turn in range(40):
        it.feed(range(300))
        it.take()
        if turn > 8:
            assert it.state.seen - it.state.sessions.low_water(it.state.position).offset <= 1200
    assert it.checkpointed == 0


def test_slow_sessions_are_checkpointed_so_that_a_replay_follows_what_is_open(monkeypatch):
    monkeypatch.setattr(chunking, "SHORT_REPLAY_RECORDS", 100)
    it = Growing()
    it.feed(range(1000, 1300))
    for _ in range(200):
        it.feed(range(100))
        it.take()
    assert it.checkpointed == 300
    open_count = it.state.sessions.open_record_count
    behind = it.state.seen - it.state.sessions.low_water(it.state.position).offset
    assert behind <= 3 * open_count


def test_what_is_due_at_once_is_staged_no_faster_than_it_is_committed(monkeypatch):
    """All sessions of a quiet night in one transaction would not be out before its timeout."""
    monkeypatch.setattr(state_module, "MAX_STAGED_BYTES", 20_000)
    it = Growing()
    it.feed(range(1000))
    closed, answers = [], 0
    while it.state.sessions.open_session_count:
        it.feed([], at_s=100)
        assert it.state.staged_bytes < 22_000
        closed += it.take()
        answers += 1
    assert closed == [(f"{key:012d}", 1, True) for key in range(1000)]
    assert answers > 10


def test_what_is_checkpointed_at_once_is_staged_no_faster_than_it_is_committed(monkeypatch):
    monkeypatch.setattr(state_module, "MAX_STAGED_BYTES", 5000)
    monkeypatch.setattr(chunking, "SHORT_REPLAY_RECORDS", 1000)
    it = Growing(ChunkPolicy(max_tokens=4))
    it.feed(range(1000))
    monkeypatch.setattr(chunking, "REPLAYED_FOR_EACH_OPEN", 0)
    monkeypatch.setattr(chunking, "SHORT_REPLAY_RECORDS", 10)
    while it.checkpointed < 990:
        it.feed([])
        assert it.state.staged_bytes < 5200
        assert it.take() == []
    assert it.state.sessions.low_water(it.state.position).offset == 990
