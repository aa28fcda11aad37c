"""What is called alive, and what ready."""

from processor.ops.health import LONGEST_BEAT_S, why_not_live, why_not_ready
from processor.ops.vitals import PartitionVitals, Vitals

READY = PartitionVitals(0, "ready")
SILENCE_S = 10.0


def vitals(*partitions, is_joined=True, answered_s_ago=0.1, stuck=()):
    return Vitals(0, is_joined, answered_s_ago, stuck, partitions)


def live(it, beat_s_ago=0.0):
    return not why_not_live(it, beat_s_ago)


def ready(it):
    return not why_not_ready(it, SILENCE_S)


def test_worker_that_has_just_started_is_alive_and_not_ready():
    it = vitals(is_joined=False, answered_s_ago=None)
    assert live(it)
    [problem] = why_not_ready(it, SILENCE_S)
    assert "KAFKA_BOOTSTRAP_SERVERS" in problem.remedy


def test_worker_with_all_partitions_open_is_ready():
    assert ready(vitals(READY, READY._replace(partition=1)))


def test_worker_that_catches_up_or_replays_is_ready():
    assert ready(vitals(PartitionVitals(0, "catching up"), PartitionVitals(1, "replaying")))


def test_worker_without_a_partition_is_ready():
    assert ready(vitals())


def test_rebalance_is_alive_and_not_ready():
    it = vitals(PartitionVitals(0, "held"), is_joined=False)
    assert live(it)
    [problem] = why_not_ready(it, SILENCE_S)
    assert "joining the group" in problem.what


def test_partition_that_is_opened_again_is_named():
    it = vitals(READY, PartitionVitals(4, "opening"))
    assert live(it)
    [problem] = why_not_ready(it, SILENCE_S)
    assert problem.what == "partition 4 is opening"


def test_brokers_that_are_away_leave_it_alive_and_not_ready():
    it = vitals(READY, answered_s_ago=3600)
    assert live(it)
    [problem] = why_not_ready(it, SILENCE_S)
    assert "no broker has answered for 3600 s" in problem.what


def test_brokers_that_answered_within_the_session_timeout_are_there():
    assert ready(vitals(READY, answered_s_ago=SILENCE_S))


def test_partition_that_is_stuck_is_not_alive():
    [problem] = why_not_live(vitals(READY, stuck=["records[0]: stuck at offset 3"]), 0.0)
    assert problem.what == "records[0]: stuck at offset 3"


def test_loop_that_runs_no_tasks_is_not_alive():
    assert live(vitals(READY), LONGEST_BEAT_S)
    assert not live(vitals(READY), LONGEST_BEAT_S + 1)
