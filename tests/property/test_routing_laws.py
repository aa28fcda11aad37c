"""Stopping a router and going on from what it committed changes nothing that it gives."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.protocol.routers import Router, add_format, raw

KEYS = st.sampled_from([None, b"a", b"b", b"\xff"])
SESSIONS = st.sampled_from(["s1", "s2"])
VALUES = st.one_of(
    st.none(),
    st.just(b"not JSON"),
    st.builds(lambda session: {"session": session}, SESSIONS),
    st.builds(lambda number: {"n": number}, st.integers(0, 3)),
    st.builds(
        lambda pairs: {"many": [list(it) for it in pairs]},
        st.lists(st.tuples(st.none() | SESSIONS, st.sampled_from("xyz")), max_size=3),
    ),
)


@pytest.fixture(scope="module", autouse=True)
def named_format():
    with pytest.MonkeyPatch.context() as patch:
        add_format(patch)
        yield


def outcome(messages, steps):
    """Feed batches; after each commit it, or lose it, or not commit it yet."""
    it = Router()
    sizes = iter([*steps, (len(messages) + 1, "commit")])
    while it.state.position < len(messages):
        size, then = next(sizes, (len(messages), "commit"))
        start = it.state.position
        batch = [raw(start + n, v, k) for n, (k, v) in enumerate(messages[start : start + size])]
        it.feed(*batch)
        if then != "hold":
            if then == "commit":
                it.commit()
            it.reopen()
    it.commit()
    letters = [(message.key, message.value, message.headers) for message in it.dead_letters]
    return it.sent, letters, it.entries


@settings(max_examples=300)
@given(
    st.lists(st.tuples(KEYS, VALUES), max_size=20),
    st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from(["commit", "lose", "hold"])), max_size=12
    ),
)
def test_cutting_anywhere_changes_no_output(messages, steps):
    assert outcome(messages, steps) == outcome(messages, [])
