"""What a changelog is read into."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.core.errors import ChangelogError
from processor.core.policy import ChunkPolicy
from processor.core.records import Record
from processor.core.session_state import SessionState
from processor.core.sessions import PartitionSessions
from processor.protocol.changelog import PARTITION_KEY, decode_sessions, encode_session
from processor.protocol.loading import AllEntries, OwnEntry, SessionEntries

HELD = (Record("s", b"1", 1, 4, 5, 113),)


def session(t, records=(), *, ended=False):
    ended_at_ms = 1_000 + t if ended else 0
    return encode_session(
        SessionState("s", t, bytes([t]) * 32, 7, ended, records, last_at_ms=ended_at_ms)
    )


keys = st.sampled_from([PARTITION_KEY, b"s1", b"s2", "ü".encode(), b"\xff"])
values = st.one_of(
    st.none(),
    st.builds(session, st.integers(0, 255), ended=st.booleans()),
    st.builds(session, st.integers(0, 255), st.just(HELD)),
    st.sampled_from([b"", b"\x03\x80", session(1)[:-1], b"\x01\x94\x01\xc4\x01x\x07\xc2"]),
)


def read_into(changelog, *fetches):
    for fetch in fetches:
        changelog.take(iter(fetch))
    return changelog


def sessions_of(policy, entries, dormant=None):
    try:
        sessions = PartitionSessions(policy, decode_sessions(entries, "c[0]"), dormant=dormant)
    except ChangelogError as error:
        return str(error)
    return {name: sessions.state(name) for name in sessions}


@given(st.lists(st.lists(st.tuples(keys, values), max_size=8), max_size=5), st.booleans())
def test_packed_at_once_or_sorted_out_at_the_end_the_sessions_are_the_same(fetches, forgets):
    policy = ChunkPolicy(forget_ended_after_s=60.0 if forgets else 0.0)
    whole = read_into(AllEntries(), *fetches).entries
    packed = read_into(SessionEntries(keeps_ends=forgets), *fetches)
    found, wanted = sessions_of(policy, packed.entries, packed.dormant), sessions_of(policy, whole)
    # Of several entries that can't be read, the first that is met is named.
    if isinstance(wanted, str):
        assert isinstance(found, str)
    else:
        assert found == wanted
    assert packed.entries.get(PARTITION_KEY) == whole.get(PARTITION_KEY)
    own = read_into(OwnEntry(), *fetches).entries
    assert own == {key: it for key, it in whole.items() if key == PARTITION_KEY}


def test_only_what_is_not_dormant_is_kept_as_it_is():
    changelog = read_into(
        SessionEntries(),
        [(b"a", session(1, HELD)), (b"b", session(1)), (b"", b"own"), (b"c", session(1))],
        [(b"a", session(2)), (b"b", session(2, HELD)), (b"c", None)],
    )
    assert changelog.entries == {PARTITION_KEY: b"own", b"b": session(2, HELD)}
    assert list(changelog.dormant) == ["a"]


@pytest.mark.parametrize("key", [b"s1", b"\xff"])
def test_an_entry_that_cannot_be_read_counts_only_if_it_is_the_last(key):
    spoilt = (key, session(1)[:-1])
    changelog = read_into(SessionEntries(), [spoilt])
    with pytest.raises(ChangelogError, match=r"c\[0\], session b"):
        list(decode_sessions(changelog.entries, "c[0]"))
    read_into(changelog, [(key, None)])
    assert list(decode_sessions(changelog.entries, "c[0]")) == []
    assert len(changelog.dormant) == 0


def test_a_session_whose_name_is_no_text_is_damage():
    changelog = read_into(SessionEntries(), [(b"\xff", session(1))])
    with pytest.raises(ChangelogError, match=r"session b'\\xff': .*the changelog is damaged"):
        list(decode_sessions(changelog.entries, "c[0]"))


@pytest.mark.parametrize("state", [(1, b"short", 7), (-1, bytes(32), 7), (1, bytes(32), -7)])
def test_a_state_that_can_be_none_is_never_packed(state):
    t, digest, next_offset = state
    changelog = read_into(
        SessionEntries(), [(b"s1", encode_session(SessionState("s1", t, digest, next_offset)))]
    )
    assert len(changelog.dormant) == 0
    with pytest.raises(ChangelogError, match="session b's1'"):
        list(decode_sessions(changelog.entries, "c[0]"))
