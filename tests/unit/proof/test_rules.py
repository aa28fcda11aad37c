import json

import pytest

from processor.core.policy import ChunkPolicy, OrIdle
from processor.proof.report import FaultKind
from tests.history import chunks_of, log_of
from tests.unit.proof.verifying import CHUNKS, at, edited, faults, relabelled, resealed, verify


def test_several_records_above_the_budget_are_a_wrong_budget():
    log = log_of("a:" + "x" * 24, "a:" + "x" * 24, "a:y")
    chunks = relabelled(chunks_of(log, ChunkPolicy(max_tokens=12)), ChunkPolicy(max_tokens=11))
    assert faults(log, chunks)["BUDGET"] == 2  # too many tokens, and not marked


@pytest.mark.parametrize(
    "fields",
    [
        {"over_budget": False},
        {"token_count": 24},
        {"max_tokens": 25},
    ],
)
def test_budget_that_the_chunk_does_not_bear_out_is_wrong(fields):
    assert faults(chunks=resealed(at(b"a", 2), **fields))["BUDGET"] == 1


def test_tokens_are_counted_again():
    records = json.loads(CHUNKS[at(b"a", 1)].value)["records"]
    records[0]["token_count"] += 1
    chunks = resealed(at(b"a", 1), records=records, token_count=10)
    assert faults(chunks=chunks) == {"BUDGET": 1}
    assert "has 1 tokens, not 2" in str(verify(chunks=chunks).first[FaultKind.BUDGET])


def test_unknown_counter_is_taken_as_given_with_a_warning():
    chunks = [
        it._replace(value=it.value.replace(b"chars_over_four", b"gone")) if it.offset % 2 else it
        for it in CHUNKS
    ]
    report = verify(chunks=chunks)
    assert report.is_clean
    (warning,) = report.warnings
    assert "taken as given: PROCESSOR_TOKEN_COUNTER=gone: no such counter" in warning


def test_chunk_above_the_caps_is_a_wrong_budget():
    policy = json.loads(CHUNKS[0].value)["policy"]
    for cap in ({"max_chunk_records": 1}, {"max_chunk_bytes": 100}):
        assert faults(chunks=resealed(at(b"a", 1), policy=policy | cap))["BUDGET"] == 1


CUTS = {
    "before it was full": (["a:1"] * 3, 1, ChunkPolicy(max_tokens=1), ChunkPolicy(max_tokens=10)),
    "after a pause": (
        ["a:1"] * 5,
        60,
        ChunkPolicy(max_chunk_records=4),
        ChunkPolicy(flush=OrIdle(30), max_chunk_records=4),
    ),
    "after too long": (
        ["a:1"] * 5,
        20,
        ChunkPolicy(max_chunk_records=4),
        ChunkPolicy(max_age_s=50, max_chunk_records=4),
    ),
    "too early for idle": (
        ["a:1"] * 3,
        6,
        ChunkPolicy(flush=OrIdle(5)),
        ChunkPolicy(flush=OrIdle(9)),
    ),
    "at the very deadline": (
        ["a:1"] * 3,
        6,
        ChunkPolicy(flush=OrIdle(5)),
        ChunkPolicy(flush=OrIdle(6)),
    ),
    "for tokens when it was late": (
        ["a:" + "x" * 32] * 3,
        60,
        ChunkPolicy(max_tokens=10),
        ChunkPolicy(max_tokens=10, flush=OrIdle(30)),
    ),
}


BY_TIME = set(CUTS) - {"before it was full"}


@pytest.mark.parametrize("name", CUTS)
def test_chunk_cut_by_another_rule_than_it_states_is_a_wrong_cut(name):
    items, step_s, policy, claimed = CUTS[name]
    log = log_of(*items, step_ms=1000 * step_s)
    chunks = chunks_of(log, policy)
    assert faults(log, chunks) == {}
    assert faults(log, relabelled(chunks, claimed)).keys() == {"CUT"}


@pytest.mark.parametrize(
    ("policy", "step_s", "flush"),
    [
        (ChunkPolicy(flush=OrIdle(30)), 30, "end"),
        (ChunkPolicy(flush=OrIdle(30), max_age_s=75), 25, "age"),
        (ChunkPolicy(flush=OrIdle(25), max_age_s=60), 20, "age"),
        (ChunkPolicy(max_age_s=60), 20, "age"),
        (ChunkPolicy(flush=OrIdle(50), max_age_s=50), 51, "idle"),
    ],
)
def test_what_comes_by_the_deadline_is_in_time(policy, step_s, flush):
    log = log_of(*["a:1"] * 9, "a.", step_ms=1000 * step_s)
    chunks = chunks_of(log, policy)
    assert b'"flush":"%b"' % flush.encode() in chunks[0].value
    assert faults(log, chunks) == {}


def test_cut_is_not_judged_when_the_policy_changes_after_it():
    log = log_of(*["a:1"] * 3)
    one, two = chunks_of(log, ChunkPolicy(max_tokens=1))
    claimed = [ChunkPolicy(max_tokens=10), ChunkPolicy(max_tokens=9)]
    assert faults(log, relabelled([one, two], claimed[0])) == {"CUT": 1}
    assert faults(log, [*relabelled([one], claimed[0]), *relabelled([two], claimed[1])]) == {}


@pytest.mark.parametrize("name", BY_TIME)
def test_cuts_by_times_that_producers_set_are_taken_as_given(name):
    items, step_s, policy, claimed = CUTS[name]
    log = [it._replace(timestamp_type=0) for it in log_of(*items, step_ms=1000 * step_s)]
    assert faults(log, relabelled(chunks_of(log, policy), claimed)) == {}


def test_cut_by_the_clock_is_taken_as_given():
    log = log_of("a:1", "a:2", "a:3")
    chunks = chunks_of(log, clock_after=1)
    assert b'"clock":true' in chunks[0].value
    assert faults(log, chunks) == {}
    not_by_clock = [it._replace(value=it.value.replace(b'"clock":true,', b"")) for it in chunks]
    log = log_of("a:1", "a:2", "a:3", "a.")
    assert faults(log, [*not_by_clock, *chunks_of(log, clock_after=1)[1:]]) == {"CUT": 1}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"flush":"tokens"', b'"flush":"count"'),
        (b'"flush":"tokens"', b'"flush":"oversize"'),
        (b'"flush":"tokens"', b'"flush":"mood"'),
    ],
)
def test_reason_that_can_not_be_is_a_wrong_cut(old, new):
    assert faults(chunks=edited(at(b"a", 1), old, new))["CUT"] >= 1


def test_age_called_idle_is_a_wrong_cut():
    policy = ChunkPolicy(flush=OrIdle(30), max_age_s=50)
    log = log_of(*["a:1"] * 5, step_ms=20_000)
    chunks = chunks_of(log, policy)
    assert b'"flush":"age"' in chunks[0].value
    called = chunks[0].value.replace(b'"flush":"age"', b'"flush":"idle"')
    assert faults(log, [chunks[0]._replace(value=called), *chunks[1:]]) == {"CUT": 1}
