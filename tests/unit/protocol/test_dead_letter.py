"""A record without a session is set aside whole."""

import pytest

from processor.core.errors import NoSessionError, SessionKeyError
from processor.protocol.dead_letter import dead_letter, session_of
from tests.history import Message


def raw(key, value=b"v", headers=()):
    return Message(42, key, value, 7, headers)


@pytest.mark.parametrize("key", [b"s1", "日本".encode(), b" ", b"\x00"])
def test_any_text_that_is_not_empty_is_a_session(key):
    assert session_of(key) == key.decode()


@pytest.mark.parametrize(
    ("key", "error"), [(None, NoSessionError), (b"", NoSessionError), (b"\xff", SessionKeyError)]
)
def test_no_key_an_empty_one_and_one_that_is_no_text_have_no_session(key, error):
    with pytest.raises(error, match="no session"):
        session_of(key)


def test_it_keeps_bytes_key_time_and_headers_and_says_why_and_from_where():
    error = NoSessionError("no session: the record has no key")
    message = dead_letter(raw(b"", b"\xff\x00", [("trace", b"1")]), "records", 3, error)
    assert (message.key, message.value, message.timestamp_ms) == (b"", b"\xff\x00", 7)
    assert message.headers == [
        ("trace", b"1"),
        ("__connect.errors.topic", b"records"),
        ("__connect.errors.partition", b"3"),
        ("__connect.errors.offset", b"42"),
        ("__connect.errors.stage", b"KEY_CONVERTER"),
        ("__connect.errors.exception.class.name", b"NoSessionError"),
        ("__connect.errors.exception.message", b"no session: the record has no key"),
        ("processor-reason", b"no-key"),
    ]


def test_a_header_that_is_there_is_never_overwritten():
    theirs = [("__connect.errors.topic", b"theirs"), ("processor-reason", b"theirs")]
    message = dead_letter(raw(None, headers=theirs), "records", 3, NoSessionError("x"))
    assert message.headers[:2] == theirs
    assert len({name for name, _ in message.headers}) == len(message.headers)
