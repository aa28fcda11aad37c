import math

from tests.chaos.takeovers import Sample, spreads, takeover_s


def samples(*rows):
    """Samples from (second, offset of partition 0, of partition 1), answered 0.1 s after asked."""
    return [Sample(at, at + 0.1, {0: zero, 1: one}) for at, zero, one in rows]


def test_takeover_lasts_until_the_last_partition_has_moved():
    seen = samples((10, 5, 5), (11, 5, 5), (12, 6, 5), (13, 6, 5), (14, 7, 6), (15, 8, 7))
    assert math.isclose(takeover_s(seen, 9.5), 4.6)


def test_commits_between_the_last_sample_and_the_fault_are_no_takeover():
    """Against the sample before the fault, 5 to 6 would look like progress at once."""
    seen = samples((9, 5, 5), (10, 6, 6), (11, 6, 6), (14, 7, 7))
    assert math.isclose(takeover_s(seen, 9.5), 4.6)


def test_sample_asked_for_before_the_fault_is_not_where_it_stood():
    seen = [Sample(9, 12, {0: 5}), Sample(12, 12.1, {0: 6}), Sample(13, 13.1, {0: 7})]
    assert math.isclose(takeover_s(seen, 9.5), 3.6)


def test_takeover_that_does_not_end_is_not_measured():
    seen = samples((10, 5, 5), (11, 9, 5))
    assert takeover_s(seen, 9.5) is None
    assert takeover_s(seen, 12) is None


def test_spreads_are_of_each_kind_and_count_what_has_no_end():
    seen = samples((10, 1, 1), (11, 2, 2), (20, 2, 2), (23, 3, 3), (30, 3, 3))
    found = spreads([("kill", 10), ("kill", 20), ("kill", 29), ("join", 29)], seen)
    kill, join = found["kill"], found["join"]
    assert (kill.faults, kill.measured) == (3, 2)
    assert [round(it, 1) for it in kill[2:]] == [1.1, 2.1, 3.1]
    assert (join.faults, join.measured, math.isnan(join.max_s)) == (1, 0, True)
