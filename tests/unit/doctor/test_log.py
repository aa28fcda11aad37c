import zlib
from types import SimpleNamespace

import pytest

from processor.doctor.finding import Level
from processor.doctor.log import group_findings, offset_findings, sample_findings
from processor.kafka.flow import chunking
from processor.kafka.group_description import GroupDescription, Member
from processor.kafka.partitioner import partitioner
from processor.kafka.reading import Ends
from processor.protocol.start_checks import SESSION_REMEDIES
from tests.unit.doctor.facts import SETTINGS, bad, only, partition, sample

FLOW = chunking(SETTINGS)
KEYS = [f"session-{number}".encode() for number in range(40)]
"""Too many for chance."""


def judge_offsets(**changes):
    return offset_findings(FLOW, [partition(), partition(3, **changes)], SESSION_REMEDIES)


def worker(number, instance_id=None, *, client="app"):
    return Member(f"{client}-{number}", "/10.0.0.1", instance_id)


def judge_group(*members, state="Stable", lag=0):
    return group_findings(FLOW, GroupDescription(0, state, members, 0), 2, lag)


def judge_sample(placed, **changes):
    """Judge a sample with each key on the partition that it is given."""
    found = sample(**{"records": 1} | changes)
    for key, numbers in placed.items():
        found.partitions[key] = {numbers} if isinstance(numbers, int) else numbers
    return sample_findings(SETTINGS, found)


def ours(keys):
    choose = partitioner(4)
    return {key: choose(key) for key in keys}


def test_offsets_that_fit_are_told_with_what_is_still_to_read():
    [finding] = judge_offsets(committed=15)
    assert (finding.level, finding.what) == (Level.OK, "offsets fit the log; 15 to read")
    assert bad(judge_offsets(committed=None, changelog_end=0)) == []


@pytest.mark.parametrize(
    ("changes", "level", "where", "what", "remedy"),
    [
        ({"start": 11}, Level.BREAKS, "records[3]", "retention has eaten", ""),
        ({"committed": 21}, Level.BREAKS, "records[3]", "created again", "processor state reset"),
        ({"committed": None}, Level.NOTE, "records[3]", "offsets expire", ""),
        (
            {"changelog_end": 0},
            Level.BREAKS,
            "app-sessions-changelog[3]",
            "the state is lost",
            "processor state rebuild",
        ),
        (
            {"changelog_start": 2},
            Level.BREAKS,
            "app-sessions-changelog[3]",
            "entries before it were deleted",
            "",
        ),
        ({"ends": Ends(12, 20)}, Level.NOTE, "records[3]", "behind offset 12", "find-hanging"),
    ],
)
def test_offset_that_does_not_fit_is_named(changes, level, where, what, remedy):
    finding = only(judge_offsets(**changes))
    assert (finding.level, finding.where) == (level, where)
    assert what in finding.what
    assert remedy in finding.remedy


def test_offset_at_either_end_of_the_log_fits():
    assert bad(judge_offsets(start=10)) == []
    assert bad(judge_offsets(committed=20)) == []


def test_group_of_workers_is_right():
    [finding] = judge_group(worker(1), worker(2))
    assert (finding.level, finding.what) == (Level.OK, "2 members, stable")


@pytest.mark.parametrize(
    ("members", "how", "level", "what"),
    [
        ([], {"lag": 9}, Level.WARN, "has no member; 9 records wait"),
        ([], {}, Level.NOTE, "has no member; 0 records wait"),
        ([worker(1)], {"state": "PreparingRebalance"}, Level.NOTE, "is rebalancing"),
        ([worker(it) for it in range(3)], {}, Level.NOTE, "has 3 members for 2 partitions"),
        ([worker(1, "a"), worker(2)], {}, Level.NOTE, "1 of 2 members have a KAFKA_GROUP_INSTANCE"),
        ([worker(1), worker(2, client="kcat")], {}, Level.BREAKS, "no workers of ours: kcat-2 at"),
    ],
)
def test_group_that_is_not_as_it_should_be_is_described(members, how, level, what):
    finding = only(judge_group(*members, **how))
    assert (finding.level, finding.where) == (level, "group app")
    assert what in finding.what


def test_client_whose_name_could_break_a_terminal_is_escaped():
    assert "\\x1b[2J" in only(judge_group(worker(1, client="\x1b[2J"))).what


def test_keys_where_murmur2_puts_them_are_right():
    assert bad(judge_sample(ours(KEYS))) == []


def test_session_on_two_partitions_is_named():
    number = ours(KEYS)[KEYS[0]]
    found = bad(judge_sample(ours(KEYS) | {KEYS[0]: {number, (number + 1) % 4}}))
    assert [it.level for it in found] == [Level.BREAKS] * 2
    assert "1 sessions are on several partitions" in found[0].what
    assert "'session-0' on [" in found[0].what


def test_key_on_another_partition_is_named_with_where_it_belongs():
    number = ours(KEYS)[KEYS[0]]
    finding = only(judge_sample(ours(KEYS) | {KEYS[0]: (number + 1) % 4}))
    assert finding.level is Level.BREAKS
    assert f"'session-0' on {(number + 1) % 4} in place of {number}" in finding.what
    assert "partitioner=murmur2_random" in finding.remedy


def test_producers_that_all_use_another_partitioner_are_warned_and_it_is_named():
    finding = only(judge_sample({key: zlib.crc32(key) % 4 for key in KEYS}))
    assert finding.level is Level.WARN
    assert "all are where librdkafka's default" in finding.what


def test_producers_that_use_two_partitioners_break_a_promise():
    mixed = ours(KEYS) | {f"other-{it}".encode(): 0 for it in range(30)}
    mixed |= {key: zlib.crc32(key) % 4 for key in mixed if key not in KEYS}
    finding = only(judge_sample(mixed))
    assert finding.level is Level.BREAKS
    assert finding.what.endswith(
        "they are where librdkafka's default (consistent_random) puts them"
    )


def test_topic_that_has_grown_is_told_by_its_keys():
    grown = ours(KEYS[:20]) | {key: partitioner(3)(key) for key in KEYS[20:]}
    assert "our own, while the topic had 3 partitions" in only(judge_sample(grown)).what


def test_key_that_could_break_a_terminal_is_escaped():
    number = ours([b"\x1b[2J"])[b"\x1b[2J"]
    assert "'\\x1b[2J'" in only(judge_sample({b"\x1b[2J": (number + 1) % 4})).what


def test_records_without_a_key_and_none_at_all_are_told():
    finding = only(judge_sample({}, keyless=3, records=9))
    assert finding.level is Level.WARN
    assert finding.what.startswith("3 of 9 sampled records have")
    assert only(judge_sample({}, records=0)).what == "holds no records to sample"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"newest_ms": 1_005_001}, "is 5.0 s ahead of our clock"),
        ({"back_ms": 5_001}, "step back by up to 5.0 s"),
    ],
)
def test_clocks_that_differ_are_warned_of(changes, what):
    finding = only(judge_sample(ours(KEYS), **changes))
    assert (finding.level, finding.where) == (Level.WARN, "clocks")
    assert what in finding.what


def test_skew_within_the_grace_is_allowed():
    assert bad(judge_sample(ours(KEYS), newest_ms=1_005_000, back_ms=5_000)) == []


def test_sample_keeps_where_keys_were_and_how_times_ran():
    def logged(key, timestamp):
        return SimpleNamespace(key=key, timestamp=timestamp)

    taken = sample()
    taken.add(0, [logged(b"a", 50), logged(None, 20), logged(b"b", 40)])
    taken.add(1, [logged(b"a", 10)])
    assert taken.partitions == {b"a": {0, 1}, b"b": {0}}
    assert (taken.records, taken.keyless, taken.newest_ms, taken.back_ms) == (4, 1, 50, 30)
