"""The law of the watchdog: what it calls stuck, and nothing else, by a definition of its own."""

from hypothesis import given
from hypothesis import strategies as st

from processor.ops.stuck import Look, StuckJudge, Trouble

AFTER_S, LONGEST_GAP_S = 4, 3

#: Few values, so that standing still is common.
a_look = st.builds(
    lambda incarnation, position, ahead, hidden: Look(
        incarnation, position, position + ahead, position + ahead + hidden
    ),
    st.sampled_from([1, 1, 1, 2]),
    st.sampled_from([5, 5, 5, 5, 6]),
    st.sampled_from([0, 1, 1, 1, 7]),
    st.sampled_from([0, 0, 2]),
)
histories = st.lists(
    st.tuples(
        st.sampled_from([1, 1, 1, 2, 3, 4, 0, -1]),
        st.dictionaries(st.sampled_from([0, 1]), a_look),
    ),
    max_size=25,
)


def stands_still(history, number):
    """Say whether all of a history's looks show one partition behind at one place."""
    looks = [looks.get(number) for _, looks in history]
    return all(it is not None and it.position < it.stable_end for it in looks) and (
        len({(it.incarnation, it.position) for it in looks}) == 1
    )


def is_stuck(history, number):
    """Say whether it stood still in looks close to one another for long enough, up to the last."""
    for first in range(len(history)):
        gaps = [gap for gap, _ in history[first + 1 :]]
        if (
            all(0 <= gap <= LONGEST_GAP_S for gap in gaps)
            and sum(gaps) >= AFTER_S
            and stands_still(history[first:], number)
        ):
            return True
    return False


@given(histories)
def test_stuck_is_what_was_seen_behind_at_one_place_all_the_time_and_nothing_else(history):
    judge, now_s = StuckJudge(AFTER_S, LONGEST_GAP_S), 100
    for index, (gap_s, looks) in enumerate(history):
        now_s += gap_s
        found = judge.judge(now_s, looks)
        stuck = {it.partition for it in found if it.trouble is Trouble.STUCK}
        assert stuck == {it for it in (0, 1) if is_stuck(history[: index + 1], it)}


@given(histories)
def test_partition_that_has_read_all_that_may_be_read_is_never_stuck(history):
    judge, now_s = StuckJudge(AFTER_S, LONGEST_GAP_S), 100
    for gap_s, looks in history:
        now_s += gap_s
        read = {number: it._replace(position=it.stable_end) for number, it in looks.items()}
        assert not [it for it in judge.judge(now_s, read) if it.trouble is Trouble.STUCK]
