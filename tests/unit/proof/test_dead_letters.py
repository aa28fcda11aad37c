import pytest

from processor.proof.message import Starts
from tests.history import Message, letters_of, log_of
from tests.unit.proof.verifying import faults, verify

DEAD = log_of(
    "a:1",
    Message(1, None, b"no key", 5),
    Message(2, b"", None, 5),
    Message(3, b"\xff", b"bad key", 5, (("h", b"1"),)),
    "a:2",
)


def test_record_without_a_session_has_one_dead_letter():
    letters = letters_of(DEAD)
    report = verify(DEAD, [], letters, processed=5)
    assert report.is_clean
    assert (report.sessionless_count, report.open_count, report.session_count) == (3, 2, 1)
    assert "beside: 3 records without a session" in report.lines()


@pytest.mark.parametrize("size", [1, 9])
@pytest.mark.parametrize(
    "spoil",
    {
        "missing": lambda it: it[1:],
        "last missing": lambda it: it[:-1],
        "twice": lambda it: [it[0], *it],
        "last twice": lambda it: [*it, it[-1]],
        "other bytes": lambda it: [it[0]._replace(value=b"x"), *it[1:]],
        "other key": lambda it: [it[0]._replace(key=b""), *it[1:]],
        "lost header": lambda it: [*it[:2], it[2]._replace(headers=it[2].headers[1:])],
        "of a session": lambda it: [*it, letters_of([Message(4, None, b"2")])[0]],
        "no origin": lambda it: [*it, it[0]._replace(headers=())],
    }.values(),
)
def test_dead_letter_that_is_not_right_is_a_fault(spoil, size):
    found = faults(DEAD, [], spoil(letters_of(DEAD)), processed=5, size=size)
    assert found == {"DEAD_LETTER": 1}


def test_dead_letter_of_what_is_not_processed_may_come_later():
    assert faults(DEAD, [], [], processed=1) == {}
    assert faults(DEAD, [], [], processed=2) == {"DEAD_LETTER": 1}


def test_dead_letters_of_other_topics_and_of_records_not_read_are_left_aside():
    later = letters_of([Message(5, None, b"x")])
    others = letters_of(DEAD, topic="others")
    assert faults(DEAD, [], [*others, *letters_of(DEAD), *later], processed=5) == {}


def test_dead_letter_sent_in_again_keeps_the_headers_of_its_first_time():
    old = letters_of([Message(77, None, b"x")])[0].headers
    log = [Message(1, None, b"x", 5, old), Message(2, None, b"y", 5)]
    letters = letters_of(log)
    letters[0] = letters[0]._replace(headers=old)
    assert faults(log, [], letters, processed=9) == {}
    assert faults(log, [], letters[1:], processed=9) == {"DEAD_LETTER": 1}


def test_dead_letters_of_records_that_are_deleted_are_left_aside():
    letters = letters_of(DEAD)
    for start in (2, 3):
        assert faults(DEAD[start:], [], letters, processed=5, starts=Starts(records=start)) == {}
    lost = faults(DEAD[3:], [], letters, processed=5, starts=Starts(records=2))
    assert lost == {"DEAD_LETTER": 1}


def test_dead_letters_may_be_deleted_too():
    starts = Starts(dead_letters=1)
    assert faults(DEAD, [], letters_of(DEAD)[1:], processed=5, starts=starts) == {}
    lost = letters_of(DEAD)[::2]
    assert faults(DEAD, [], lost, processed=5, starts=starts) == {"DEAD_LETTER": 1}
