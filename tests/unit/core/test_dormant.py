import sys

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from processor.core.dormant import DormantSessions
from processor.core.session_state import SessionState

DIGEST = bytes(range(32))
# Short keys that begin with each other, keys that stand in others' states, and the long ones.
KEYS = st.sampled_from(["s", "s1", "s11", "\x00", "", "ü", *(f"session-{it}" for it in range(300))])


def put(sessions, state):
    sessions.put(
        state.session.encode(), state.t, state.next_offset, state.digest, ended=state.ended
    )


class LikeADict(RuleBasedStateMachine):
    """Whatever is done to it, it holds what a dict of states would."""

    def __init__(self):
        super().__init__()
        self.sessions = DormantSessions()
        self.model = {}

    @rule(
        key=KEYS,
        t=st.integers(0, (1 << 64) - 1),
        next_offset=st.integers(0, (1 << 63) - 1),
        digest=st.binary(min_size=32, max_size=32),
        ended=st.booleans(),
    )
    def put(self, key, t, next_offset, digest, ended):
        self.model[key] = SessionState(key, t, digest, next_offset, ended)
        put(self.sessions, self.model[key])

    @rule(first=st.integers(0, 200))
    def put_many(self, first):
        for number in range(first, first + 100):
            self.put(f"session-{number}", number, 1, DIGEST, ended=False)

    @rule(first=st.integers(0, 200))
    def pop_many(self, first):
        for number in range(first, first + 100):
            self.pop(f"session-{number}")

    @rule(key=KEYS)
    def pop(self, key):
        assert self.sessions.pop(key) == self.model.pop(key, None)

    @rule(key=KEYS)
    def drop(self, key):
        self.sessions.drop(key.encode())
        self.model.pop(key, None)

    @rule(key=KEYS)
    def get(self, key):
        assert self.sessions.get(key) == self.model.get(key)

    @invariant()
    def holds_the_same(self):
        assert len(self.sessions) == len(self.model)
        assert sorted(self.sessions) == sorted(self.model)


TestLikeADict = LikeADict.TestCase
TestLikeADict.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)


def test_a_session_takes_at_most_120_bytes():
    """The worst case is just after the index has doubled."""
    sessions = DormantSessions()
    for number in range(100_000):
        put(sessions, SessionState(f"{number:036d}", number, DIGEST))
        if number > 1000 and number % 100 == 0:
            assert sessions.size_bytes / len(sessions) <= 120


def test_a_session_that_wakes_and_sleeps_takes_its_place_again():
    sessions = DormantSessions()
    for _ in range(100):
        put(sessions, SessionState("s1", 1, DIGEST))
        taken = sessions.size_bytes
        sessions.pop("s1")
    put(sessions, SessionState("s1", 1, DIGEST))
    assert sessions.size_bytes == taken


def test_forgotten_sessions_do_not_pile_up():
    sessions = DormantSessions()
    for number in range(100_000):
        put(sessions, SessionState(f"{number:036d}", number, DIGEST))
        sessions.pop(f"{number - 10:036d}")
    assert sessions.size_bytes < 100_000


@pytest.mark.parametrize("forgotten", [0, 3000])
def test_room_is_made_for_a_small_part_of_the_sessions_at_a_time(forgotten):
    """With ten million of them in one piece a worker stood still for seconds."""
    sessions, longest = DormantSessions(), 0
    for number in range(5000):
        state = SessionState(f"{number:036d}", number, DIGEST)
        longest = max(longest, lines_run(lambda it=state: put(sessions, it)))
        if number < forgotten:
            sessions.pop(state.session)
    assert longest < 5000


def lines_run(call):
    count = 0

    def trace(_frame, event, _arg):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def test_sessions_are_found_whichever_block_they_are_in():
    """With names so long that a block holds four of them."""
    sessions, names = DormantSessions(), [f"{number}" * 20_000 for number in range(10, 99)]
    for turn in range(8):
        of_turn = [f"{turn}{name}" for name in names]
        for name in of_turn:
            put(sessions, SessionState(name, turn, DIGEST))
        assert sorted(sessions) == of_turn
        for name in of_turn:
            assert sessions.pop(name) == SessionState(name, turn, DIGEST)
        assert not list(sessions)
