"""Which chunks count for latency, from when on, and what is said of them."""

import pytest

from benchmarks.contender import ContenderError
from benchmarks.judging import Expected
from benchmarks.latency import BURST, SETTLE_S, Latency, Pace, at_share, summed_up, took_ms

EXPECTED = Expected({}, {b"a": [10, 20, 30], b"b": [25]}, {})
SEEN = {b"a": [1_500.0, 2_100.0, 3_050.0], b"b": [2_750.0]}


def due_at_ms(offset):
    return offset * 100


def test_clock_starts_when_the_record_that_closed_the_chunk_was_due():
    assert list(took_ms(EXPECTED, SEEN, 0, due_at_ms)) == [500, 100, 50, 250]


def test_chunks_closed_before_the_first_record_that_counts_are_left_out():
    assert list(took_ms(EXPECTED, SEEN, 20, due_at_ms)) == [100, 50, 250]


def test_chunk_that_nobody_saw_is_an_error():
    with pytest.raises(ValueError, match="shorter"):
        list(took_ms(EXPECTED, SEEN | {b"a": [1_500.0]}, 0, due_at_ms))


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.0, 1)])
def test_share_of_all_is_at_or_below_the_value(share, value):
    assert at_share(range(1, 101), share) == value


def test_pace_takes_records_to_wake_up_and_to_settle_too():
    assert Pace(0.5, 100.0, 8.0).records == BURST + 100 * (8 + SETTLE_S)


def test_latency_sums_up_all_chunks_in_whatever_order():
    took = [float(it) for it in range(200, 0, -1)]
    assert summed_up("worker", 0.5, 99.5, took, 0.01) == Latency(
        "worker", 0.5, 99.5, 200, 100.0, 198.0, 200.0, 0.01
    )


def test_pace_at_which_no_chunk_closed_has_no_latency():
    with pytest.raises(ContenderError, match="more of --latency"):
        summed_up("worker", 0.5, 0.5, [], None)
