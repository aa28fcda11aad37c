import pytest

from processor.doctor.facts import Replicas
from processor.doctor.finding import Level
from processor.doctor.safety import safety_findings
from tests.unit.doctor.facts import SETTINGS, bad, broker, only, topic

THREE = [broker(it) for it in (1, 2, 3)]
STATE, OFFSETS = "__transaction_state", "__consumer_offsets"
INTERNAL = {it: (Replicas(0, 1, 3, 3),) for it in (STATE, OFFSETS)}


def judge(found=None, *, internal=INTERNAL, brokers=THREE):
    return safety_findings(SETTINGS, {"chunks": found or topic()}, internal, brokers)


def test_three_copies_of_which_two_are_needed_are_right():
    assert bad(judge()) == []


def test_one_broker_is_noted_and_nothing_else_is_asked_of_it():
    internal = {it: (Replicas(0, 1, 1, 1),) for it in INTERNAL}
    alone = topic(copies=1, min_insync_replicas=1)
    finding = only(judge(alone, internal=internal, brokers=[broker()]))
    assert (finding.level, finding.where) == (Level.NOTE, "brokers")


@pytest.mark.parametrize(
    ("replicas", "level", "what"),
    [
        (Replicas(0, -1, 3, 1), Level.BREAKS, "has no leader"),
        (Replicas(0, 1, 3, 1), Level.BREAKS, "1 copies are in sync, 2 are needed"),
        (Replicas(0, 1, 3, 2), Level.WARN, "2 of 3 copies are in sync"),
    ],
)
def test_copies_that_are_behind_are_named_by_their_partition(replicas, level, what):
    finding = only(judge(topic(replicas=(replicas,))))
    assert (finding.level, finding.where) == (level, "chunks[0]")
    assert finding.what.startswith(what)


@pytest.mark.parametrize(
    ("found", "level", "remedy"),
    [
        (topic(unclean_leader_election_enable="true"), Level.BREAKS, "election.enable=false"),
        (topic(min_insync_replicas=1), Level.WARN, "min.insync.replicas=2"),
        (topic(copies=1, min_insync_replicas=1), Level.WARN, "kafka-reassign-partitions.sh"),
    ],
)
def test_topic_that_may_lose_what_was_acknowledged_is_named(found, level, remedy):
    finding = only(judge(found))
    assert (finding.level, finding.where) == (level, "chunks")
    assert finding.remedy.endswith(remedy)


@pytest.mark.parametrize("name", [STATE, OFFSETS])
def test_internal_topic_with_one_copy_may_stop_commits(name):
    finding = only(judge(internal=INTERNAL | {name: (Replicas(0, 1, 1, 1),)}))
    assert (finding.level, finding.where) == (Level.WARN, name)


def test_internal_topic_without_a_leader_stops_commits():
    finding = only(judge(internal=INTERNAL | {STATE: (Replicas(7, -1, 3, 0),)}))
    assert (finding.level, finding.where) == (Level.BREAKS, f"{STATE}[7]")


@pytest.mark.parametrize(("factor", "level"), [(4, Level.BREAKS), (2, Level.WARN), (3, None)])
def test_internal_topic_that_is_to_come_must_be_possible(factor, level):
    """The usual trap of a new cluster: three copies asked of one broker, and no start ends."""
    changed = {"transaction_state_log_replication_factor": factor}
    brokers = [broker(it, **changed) for it in (1, 2, 3)]
    found = bad(judge(internal={OFFSETS: INTERNAL[OFFSETS]}, brokers=brokers))
    assert [it.level for it in found] == [level] * (level is not None)
    assert all("replication.factor=3 in server.properties" in it.remedy for it in found)
