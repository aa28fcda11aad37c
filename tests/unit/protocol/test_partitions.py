"""How a worker's partitions are opened again."""

from itertools import pairwise

import pytest

from processor.protocol.partitions import MAX_FAILURES, reopening_wait_s

FAILURES = range(1, MAX_FAILURES)


def test_wait_grows_and_stays_within_seconds():
    waits = [reopening_wait_s(0, failures) for failures in FAILURES]
    assert all(earlier < later for earlier, later in pairwise(waits[:5]))
    assert 0.15 <= waits[0] <= 0.25
    assert all(3.75 <= wait <= 6.25 for wait in waits[6:])


@pytest.mark.parametrize("failures", [1, 3, 9])
def test_partitions_do_not_all_come_back_in_the_same_moment(failures):
    """Brokers that restart met every partition of every worker after 0.2, 0.4, 0.8 s and so on."""
    waits = [reopening_wait_s(number, failures) for number in range(100)]
    middle = sum(waits) / 100
    fullest = max(sum(start <= it < start + middle / 20 for it in waits) for start in waits)
    assert fullest < 30


def test_partition_that_fails_with_another_waits_for_another_time_at_the_next_failure():
    assert {reopening_wait_s(3, it) < reopening_wait_s(4, it) for it in FAILURES} == {True, False}
