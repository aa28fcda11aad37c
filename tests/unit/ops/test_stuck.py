import pytest

from processor.ops.stuck import Finding, Look, StuckJudge, Trouble

AFTER_S, INTERVAL_S = 120, 30
BEHIND = Look(incarnation=1, position=5, stable_end=9, high_watermark=9)
IDLE = BEHIND._replace(position=9)
#: The log ends with a commit marker, which is passed though it is no record.
PAST_THE_MARKER = Look(incarnation=1, position=10, stable_end=10, high_watermark=10)
AT_AN_OPEN_TRANSACTION = IDLE._replace(high_watermark=12)
NO_LOOK = None


def judged(*looks, step_s=INTERVAL_S):
    """Judge partition 3 by looks one after the other and return the last findings."""
    judge, found = StuckJudge(AFTER_S, 3 * INTERVAL_S), []
    for number, look in enumerate(looks):
        found = judge.judge(1000 + number * step_s, {} if look is NO_LOOK else {3: look})
    return found


def test_partition_that_is_behind_and_does_not_move_is_stuck_after_the_time():
    assert judged(*[BEHIND] * 4) == []
    assert judged(*[BEHIND] * 5) == [Finding(3, Trouble.STUCK, 5, 120)]


def test_partition_stays_stuck_however_much_the_log_grows():
    looks = [BEHIND._replace(stable_end=9 + n, high_watermark=9 + n) for n in range(5)]
    assert judged(*looks) == [Finding(3, Trouble.STUCK, 5, 120)]


@pytest.mark.parametrize("look", [IDLE, PAST_THE_MARKER])
def test_partition_that_has_read_all_is_never_stuck(look):
    assert judged(*[look] * 50) == []


def test_partition_that_moves_is_never_stuck_however_slowly():
    assert judged(*[BEHIND._replace(position=n // 4, stable_end=99) for n in range(50)]) == []


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(NO_LOOK, id="no answer, or not flowing"),
        pytest.param(IDLE, id="caught up"),
        pytest.param(BEHIND._replace(incarnation=2), id="opened again"),
        pytest.param(BEHIND._replace(position=4), id="replays"),
    ],
)
def test_time_begins_anew_with(between):
    assert judged(*[BEHIND] * 4, between, *[BEHIND] * 4) == []
    assert judged(*[BEHIND] * 4, between, *[BEHIND] * 5) != []


def test_process_that_was_stopped_between_two_looks_begins_anew():
    judge = StuckJudge(AFTER_S, 3 * INTERVAL_S)
    assert judge.judge(0, {3: BEHIND}) == []
    assert judge.judge(10_000, {3: BEHIND}) == []
    assert judge.judge(10_060, {3: BEHIND}) == []
    assert judge.judge(10_120, {3: BEHIND}) != []


def test_clock_that_steps_back_begins_anew():
    judge = StuckJudge(AFTER_S, 3 * INTERVAL_S)
    assert judge.judge(100, {3: BEHIND}) == []
    assert judge.judge(0, {3: BEHIND}) == []
    assert judge.judge(60, {3: BEHIND}) == []
    assert judge.judge(120, {3: BEHIND}) != []


def test_each_partition_is_judged_by_itself():
    judge = StuckJudge(AFTER_S, 3 * INTERVAL_S)
    for number in range(5):
        looks = {0: IDLE, 1: BEHIND, 2: BEHIND._replace(position=number)}
        found = judge.judge(number * INTERVAL_S, looks)
    assert [it.partition for it in found] == [1]


def test_stable_offset_that_stands_below_the_end_is_an_open_transaction_and_nothing_is_stuck():
    assert judged(*[AT_AN_OPEN_TRANSACTION] * 4) == []
    assert judged(*[AT_AN_OPEN_TRANSACTION] * 5) == [Finding(3, Trouble.OPEN_TRANSACTION, 9, 120)]


def test_transactions_that_come_and_go_are_no_trouble():
    assert judged(*[Look(1, n, n, n + 3) for n in range(50)]) == []
