from itertools import combinations
from typing import get_args

import pytest

from tests.chaos.schedule import SLOTS, WORKERS, Kind, draw

SEEDS = range(20)


def test_a_seed_always_draws_the_same_faults_and_another_seed_others():
    assert draw(300, 7) == draw(300, 7)
    assert draw(300, 7) != draw(300, 8)


def test_a_longer_run_begins_like_a_shorter_one():
    """So that the first minutes of a long run's failure can be played alone."""
    short = draw(120, 3)
    assert draw(600, 3)[: len(short)] == short


@pytest.mark.parametrize("seed", SEEDS)
def test_every_kind_of_fault_comes_in_three_minutes(seed):
    assert {fault.kind for fault in draw(180, seed)} == set(get_args(Kind))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("brokers", [1, 3])
def test_no_target_has_two_faults_at_a_time(seed, brokers):
    faults = draw(600, seed, brokers=brokers)
    for one, other in combinations(faults, 2):
        # Of the brokers only one may be broken, whichever it is.
        if one.is_brokers != other.is_brokers:
            continue
        if one.is_brokers or one.target == other.target:
            assert one.at_s + one.for_s < other.at_s


@pytest.mark.parametrize("seed", SEEDS)
def test_all_is_mended_before_the_records_end_and_targets_exist(seed):
    for fault in draw(180, seed, brokers=3):
        assert fault.at_s + fault.for_s < 180
        assert fault.target in range(3 if fault.is_brokers else SLOTS)
        assert (fault.target >= WORKERS) == (fault.kind == "worker join")
