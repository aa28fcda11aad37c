import pytest

from processor.core.asleep import SessionsAsleep
from processor.core.dormant import DormantSessions
from processor.core.policy import ChunkPolicy
from processor.core.session_state import SessionState


def test_open_chunks_are_only_looked_at_where_a_session_may_be_forgotten():
    """After a restore that sorts all open sessions: once a batch, it made each batch slow."""
    asleep = SessionsAsleep(ChunkPolicy(forget_ended_after_s=3), DormantSessions())
    asleep.put(SessionState("a", 1, bytes(32), 8, ended=True, last_at_ms=1_000))
    assert asleep.drop_forgotten(4_000, pytest.fail) == []
    assert asleep.drop_forgotten(4_001, lambda: 1_000) == []
    assert asleep.drop_forgotten(4_001, lambda: None) == ["a"]
    assert asleep.drop_forgotten(9_999, pytest.fail) == []
