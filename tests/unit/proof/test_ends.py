import json

import pytest

from tests.history import chunks_of, log_of
from tests.unit.proof.verifying import LOG, at, edited, faults, verify


def test_final_chunk_without_an_end_is_a_wrong_end():
    log = [it for it in LOG if it.offset != 6]
    assert faults(log) == {"END": 1}
    assert faults(log, size=100) == {"END": 1}
    log = log_of("a:1", "a.")
    assert faults(log[:1], chunks_of(log)) == {"END": 1}


@pytest.mark.parametrize(
    ("at", "old", "new"),
    [
        (at(b"a", 1), b'"final":false', b'"final":true'),
        (at(b"b", 1), b'"final":true', b'"final":false'),
        (at(b"b", 1), b'"flush":"end"', b'"flush":"tokens"'),
    ],
)
def test_final_chunk_is_one_that_an_end_closed(at, old, new):
    assert faults(chunks=edited(at, old, new))["END"] >= 1


def test_end_without_its_final_chunk_is_a_wrong_end():
    log = log_of("a:1", "a.", "a:2", "a.")
    no_first_end = chunks_of([log[0], *log[2:]], clock_after=0)
    assert [json.loads(it.value)["final"] for it in no_first_end] == [False, True]
    assert faults(log, no_first_end) == {"END": 1}
    assert faults(log, no_first_end, size=9) == {"END": 1}
    assert faults(log_of("a."), [], processed=1) == {"END": 1}


def test_end_alone_and_behind_a_closing_has_an_empty_final_chunk():
    log = log_of("a.", "a.", "a:1", "b:1", "a.", "a.", "a:2")
    for size in (1, 9):
        for clock_after in (2, None):
            report = verify(log, chunks_of(log, clock_after=clock_after), size=size, processed=7)
            assert report.is_clean, report.lines()


def test_second_final_chunk_with_nothing_between_is_a_wrong_end():
    log = log_of("a:1", "a.", "b:1", "b.", "a:2", "a.")
    chunks = chunks_of([*log[:4], log[1]._replace(offset=3), *log[4:]])
    extra = chunks_of(log_of("a.", "a:1", "a."))
    again = json.loads(extra[0].value) | {
        "t": 2,
        "previous_digest": json.loads(chunks[0].value)["digest"],
    }
    assert faults(log, [chunks[0], extra[0]._replace(value=json.dumps(again).encode())])["END"] == 1


def test_final_chunk_that_left_records_before_its_end_is_a_wrong_end():
    log = log_of("a:1", "a:2", "a.")
    early = chunks_of([log[0], log[2]])
    assert faults(log, early, size=9)["END"] == 1
    assert faults(log, early, size=1)["END"] == 1
