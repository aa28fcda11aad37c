"""Which letters were sent again, remembered as ranges."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.core.errors import StateError
from processor.protocol.letters import Letter
from processor.protocol.redriven import OffsetRanges, decode_redriven

spans = st.tuples(st.integers(0, 30), st.integers(1, 8)).map(lambda it: (it[0], it[0] + it[1]))


def letter(offset, timestamp=1):
    return Letter("dead", 0, SimpleNamespace(offset=offset, timestamp=timestamp))


@given(st.lists(spans))
def test_ranges_hold_what_a_set_would(added):
    ranges = OffsetRanges(added)
    expected = {offset for begin, end in added for offset in range(begin, end)}
    assert {offset for offset in range(50) if offset in ranges} == expected


@given(st.lists(spans))
def test_ranges_are_in_order_and_never_touch(added):
    pairs = OffsetRanges(added).pairs()
    assert all(one[1] < other[0] for one, other in pairwise(pairs))


def test_letters_with_markers_between_them_are_one_range():
    redriven = decode_redriven(None, "")
    for begin, offset in ((0, 0), (1, 2), (3, 4)):
        redriven.add(letter(offset), begin)
    redriven.add(letter(9), 9)
    assert b"[[0,5],[9,10]]" in redriven.encode()


def test_entry_comes_back_as_it_was():
    redriven = decode_redriven(None, "")
    redriven.add(letter(7, timestamp=70), 5)
    redriven.add(letter(3, timestamp=30), 3)
    back = decode_redriven(redriven.encode(), "")
    assert back.last == (7, 70)
    assert [offset for offset in range(10) if letter(offset) in back] == [3, 5, 6, 7]
    assert back.encode() == redriven.encode()


@pytest.mark.parametrize(
    ("start", "end", "timestamp_ms", "is_of"),
    [
        (0, 8, 70, True),
        (8, 8, None, True),  # retention took it: nothing can be told
        (0, 7, None, False),
        (0, 8, 71, False),
        (0, 8, None, False),
    ],
)
def test_topic_that_lacks_the_last_letter_is_another(start, end, timestamp_ms, is_of):
    redriven = decode_redriven(None, "")
    redriven.add(letter(7, timestamp=70), 7)
    assert redriven.is_of(start, end, timestamp_ms) is is_of


@pytest.mark.parametrize(
    "entry", [b"", b"[]", b'{"version":2,"ranges":[],"last":[0,0]}', b'{"version":1}']
)
def test_entry_that_cannot_be_read_is_a_state_fault_with_its_place(entry):
    with pytest.raises(StateError, match="there"):
        decode_redriven(entry, "there")
