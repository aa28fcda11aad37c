"""A session that was forgotten after its end: where its chain may begin anew, and where not."""

from dataclasses import replace

import pytest

from tests.history import POLICY, chunks_of, log_of
from tests.unit.proof.verifying import faults, verify

FORGETTING = replace(POLICY, forget_ended_after_s=3.0)
#: Session a ends at 1 s, is ended again at 2 s, comes again at 5 s, and after its end at 6 s only
#: another end comes, at 10 s.
LOG = log_of("a:1", "a.", "a.", "b:1", "b:2", "a:2", "a.", "b:3", "b:4", "b:5", "a.", "b.", "b:6")


@pytest.mark.parametrize("size", [1, 4, 99])
def test_a_session_that_comes_again_after_it_was_forgotten_is_clean(size):
    chunks = chunks_of(LOG, FORGETTING)
    assert [it.headers[-1][1] for it in chunks if it.key == b"a"] == [b"a/1"] * 3
    report = verify(LOG, chunks, size=size, recompute=True, processed=len(LOG))
    assert report.is_clean, report.lines()
    assert report.not_recomputed_count == 0


@pytest.mark.parametrize("size", [1, 99])
def test_a_chain_that_begins_anew_too_soon_is_a_gap(size):
    chunks = chunks_of(LOG, FORGETTING)
    early = replace(FORGETTING, forget_ended_after_s=9.0)
    said = [it._replace(value=it.value.replace(b'after_s":3}', b'after_s":9}')) for it in chunks]
    assert said != chunks_of(LOG, early)
    assert faults(LOG, said, size=size)["GAP"] >= 1


def test_a_chain_that_begins_anew_where_nothing_is_forgotten_is_a_gap():
    said = [
        it._replace(value=it.value.replace(b',"forget_ended_after_s":3', b""))
        for it in chunks_of(LOG, FORGETTING)
    ]
    assert faults(LOG, said)["GAP"] >= 1


def test_a_chain_that_begins_anew_without_an_end_is_a_gap():
    log = log_of("a:1", "a:" + "x" * 100, "a:" + "y" * 100)
    first, *rest = chunks_of(log, FORGETTING)
    anew = chunks_of(log[1:], FORGETTING)
    assert len(rest) == len(anew)
    assert faults(log, [first, *anew])["GAP"] == 1
