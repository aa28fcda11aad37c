"""A dead letter read back, and the record that it becomes."""

import pytest

from processor.core.errors import NoSessionError
from processor.protocol.dead_letter import dead_letter
from processor.protocol.letters import Choice, Letter
from tests.history import Message


def letter_of(headers=(), *, key=None, topic="records", offset=42, timestamp=7):
    """What the worker makes of a record without a session, as it is read again."""
    record = Message(offset, key, b"v", timestamp, headers)
    made = dead_letter(record, topic, 3, NoSessionError("x"))
    return bare(made.headers, timestamp=timestamp)


def bare(headers=(), *, timestamp=7):
    return Letter("dead", 1, Message(9, None, b"v", timestamp, headers))


def test_it_says_where_it_stands_why_and_from_where():
    letter = letter_of()
    assert (str(letter), letter.reason, letter.origin) == ("dead[1]@9", "no-key", "records[3]@42")
    assert (letter.origin_topic, letter.replay_count) == ("records", 0)


@pytest.mark.parametrize(
    "headers",
    [(), [("processor-reason", None)], [("processor-replay-count", b"many"), ("x", None)]],
)
def test_one_that_says_nothing_or_nonsense_is_read_all_the_same(headers):
    letter = bare(headers)
    assert (letter.reason, letter.origin_topic, letter.replay_count) == ("", "", 0)


def test_record_keeps_its_own_headers_in_order_and_gets_origin_and_count():
    own = [("trace", b"1"), ("trace", None), ("processor-reasons", b"")]
    assert letter_of(own).record_headers() == [
        *own,
        ("processor-origin", b"records[3]@42"),
        ("processor-replay-count", b"1"),
    ]


def test_header_of_an_error_that_the_record_had_itself_is_kept():
    own = [("__connect.errors.topic", b"theirs"), ("last", b"1")]
    assert letter_of(own).record_headers()[:2] == own


def test_second_round_keeps_the_first_origin_and_counts_on():
    again = letter_of(letter_of([("trace", b"1")]).record_headers(), topic="records", offset=99)
    assert again.origin == "records[3]@99"
    assert again.record_headers() == [
        ("trace", b"1"),
        ("processor-origin", b"records[3]@42"),
        ("processor-replay-count", b"2"),
    ]


@pytest.mark.parametrize(
    ("choice", "is_taken"),
    [
        (Choice(), True),
        (Choice(since_ms=7), True),
        (Choice(since_ms=8), False),
        (Choice(reason="no-key"), True),
        (Choice(reason="key-not-utf8"), False),
        (Choice(origin_topic="records"), True),
        (Choice(origin_topic="others"), False),
        (Choice(7, "no-key", 1, "records"), True),
    ],
)
def test_choice_is_by_time_reason_and_origin(choice, is_taken):
    assert choice.takes(letter_of()) is is_taken


def test_letter_without_an_origin_belongs_to_any_topic():
    assert Choice(origin_topic="records").takes(bare())
