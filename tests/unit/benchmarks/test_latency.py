"""Which chunks count for latency, from when on, and what is said of them."""

import pytest

from benchmarks.judging import Expected
from benchmarks.latency import SETTLE_S, Pace, at_share, took_ms

EXPECTED = Expected({}, {b"a": [1_000, 2_000, 3_000], b"b": [2_500]}, {})
SEEN = {b"a": [1_500.0, 2_100.0, 3_050.0], b"b": [2_750.0]}


def test_clock_starts_at_the_record_that_closed_the_chunk():
    assert list(took_ms(EXPECTED, SEEN, (0, 9_999))) == [500, 100, 50, 250]


def test_chunks_closed_outside_the_window_do_not_count():
    assert list(took_ms(EXPECTED, SEEN, (2_000, 3_000))) == [100, 250]


def test_chunk_that_nobody_saw_is_an_error():
    with pytest.raises(ValueError, match="shorter"):
        list(took_ms(EXPECTED, SEEN | {b"a": [1_500.0]}, (0, 9_999)))


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_share_of_all_is_at_or_below_the_value(share, value):
    assert at_share(range(1, 101), share) == value


def test_records_flow_while_they_settle_too():
    assert Pace(100.0, 8.0).count == 100 * (8 + SETTLE_S)
