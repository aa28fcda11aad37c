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


@pytest.mark.parametrize("size", [1, 99])
def test_a_session_that_was_dropped_stays_so_when_nothing_is_forgotten_any_more(size):
    log = log_of("a:1", "a.", *["b:1"] * 4, "a:2", "a.", "b.")
    first, again, rest = chunks_of(log, FORGETTING)
    encoded = [
        it._replace(value=it.value.replace(b',"forget_ended_after_s":3', b""))
        for it in (again, rest)
    ]
    assert b"forget" not in encoded[0].value
    report = verify(log, [first, *encoded], size=size, recompute=True)
    assert report.is_clean, report.lines()


@pytest.mark.parametrize("size", [1, 99])
def test_ends_behind_an_end_are_ignored_until_the_session_is_forgotten(size):
    """Symptom: ``--recompute`` said "nothing in the log closes a chunk here" of the final chunk.

    It asked the first message behind the chunk before alone, an end that is ignored.
    """
    log = log_of("a.", "a.", "a.", "a.", "a.", "a:1", "a.")
    chunks = chunks_of(log, FORGETTING)
    assert len(chunks) == 3
    report = verify(log, chunks, size=size, recompute=True, processed=len(log))
    assert report.is_clean, report.lines()
    assert faults(log, [chunks[0], chunks[2]], size=size, processed=len(log)) == {"END": 1}


@pytest.mark.parametrize("size", [1, 99])
def test_a_change_of_the_setting_is_told_with_its_place(size):
    """Under the first policy the second end was ignored; under the second one it would not be."""
    log = log_of("a:1", "a.", *["b:1"] * 4, "a.", "a:2", "a.")
    (first, _), (anew,) = chunks_of(log), chunks_of(log[7:], FORGETTING)
    chunks = [first, anew._replace(offset=1)]
    report = verify(log, chunks, size=size, recompute=True)
    assert report.is_clean, report.lines()
    (warning,) = report.warnings
    assert warning.startswith("chunks[0]@1: from here on forget_ended_after_s is 3, before it 0. ")


def test_a_session_that_no_chunk_tells_to_be_forgotten_is_one_gap_that_says_so():
    first, *_ = chunks_of(LOG)
    anew = chunks_of(LOG[3:])
    report = verify(LOG, [first, *anew], recompute=True)
    assert report.faults.total() == 1, report.lines()
    assert "no chunk so far tells of a policy" in report.lines()[-2]
