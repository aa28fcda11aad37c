"""A run that broke a promise must end as a failure that says which."""

from collections import Counter

import pytest

from tests.chaos.judging import Judgement
from tests.chaos.report import Outcome
from tests.chaos.takeovers import Spread
from tests.e2e.log_reading import Message
from tests.e2e.oracle import judge_logs
from tests.history import POLICY, chunks_of, log_of

LOG = log_of(*[f"a:{number:020}" for number in range(6)], "a.")


def as_read(messages):
    return [Message(0, it.offset, it.timestamp, it.key, it.value, it.headers) for it in messages]


def outcome(chunks, *failures, is_proven=True, proof="3 recomputed, 0 different"):
    verdict = judge_logs(as_read(LOG), as_read(chunks), [], max_tokens=POLICY.max_tokens)
    closed = Counter(tokens=2, end=1)
    judgement = Judgement(verdict, f"verified, {proof}", is_proven, closed)
    kills = {"worker kill": Spread(2, 1, 1.5, 1.5, 1.5)}
    return Outcome("seed 0", kills, Counter({"0": 3}), Counter(), judgement, failures)


def test_sound_run_is_well():
    whole = outcome(chunks_of(LOG))
    assert whole.ok
    assert "1 without an end" in str(whole)


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda chunks: [*chunks[:1], *chunks[2:]], "2 missing"),
        (lambda chunks: [*chunks[:2], chunks[1], *chunks[2:]], "2 repeated"),
    ],
    ids=["lost", "doubled"],
)
def test_lost_or_doubled_chunk_is_a_failure(spoil, fault):
    broken = outcome(spoil(chunks_of(LOG)))
    assert not broken.ok
    assert fault in str(broken)
    assert str(broken).endswith("SOMETHING IS WRONG")


def test_worker_that_ended_by_itself_is_a_failure_though_no_promise_was_broken():
    ended = outcome(chunks_of(LOG), "worker 1 ended with 70 by itself; its log")
    assert not ended.ok
    assert "FAILURE: worker 1 ended with 70" in str(ended)


def test_fault_that_verify_alone_finds_is_a_failure():
    assert not outcome(chunks_of(LOG), is_proven=False).ok


@pytest.mark.parametrize("count", ["3 recomputed, 1", "2 recomputed, 0", "13 recomputed, 0"])
def test_chunk_that_does_not_come_out_again_to_the_byte_is_a_failure(count):
    """Also one that could not be computed, for which verify exits 0."""
    assert not outcome(chunks_of(LOG), proof=f"{count} different").ok
