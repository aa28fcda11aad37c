import os

import pytest

from processor.core.errors import NoSessionError, SessionKeyError
from tests.unit.formats.samples import read_all, sample, sessions_of


@pytest.mark.parametrize(
    ("line", "path", "session"),
    [
        (b'{"s":"a"}', "s", "a"),
        (b'{"m":{"s":{"id":"a b"}},"s":"x"}', "m.s.id", "a b"),
        (b'{"s":17}', "s", "17"),
        (b'{"s":9007199254740993}', "s", "9007199254740993"),
        ('{"s":"\u2028é"}'.encode(), "s", "\u2028é"),
        (b' {"s":"a"}\r', "s", "a"),
        (b'\xef\xbb\xbf{"s":"a"}', "s", "a"),
        (b'{"s":"a","t":"\\ud83d"}', "s", "a"),
        (b'{"s":"a","t":NaN}', "s", "a"),
        (b'{"s":"a","s":"b"}', "s", "b"),
    ],
)
def test_session_is_what_stands_at_the_path(line, path, session):
    assert sessions_of(read_all("jsonl", [line], session_fields=(path,))) == [session]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"\xff",
        b"[1]",
        b"3",
        b'{"t":"a"}',
        b'{"s":""}',
        b'{"s":null}',
        b'{"s":true}',
        b'{"s":1.5}',
        b'{"s":["a"]}',
        b'{"s":{"s":"a"}}',
        b'{"s":"\\ud83d"}',
        b'{"s":"a"',
        b"[" * 100_000,
        b'{"s":' * 100_000,
        b'{"s":' + b"1" * 5000 + b"}",
    ],
)
def test_line_without_a_session_is_of_its_stream_or_refused(line):
    with pytest.raises(NoSessionError, match=r"no session at 's'"):
        read_all("jsonl", [line], session_fields=("s",))
    assert sessions_of(read_all("jsonl", [line], "file", session_fields=("s",))) == ["file"]


def test_path_through_a_value_that_is_no_object_leads_nowhere():
    with pytest.raises(NoSessionError):
        read_all("jsonl", [b'{"s":"a"}'], session_fields=("s.t",))


def test_first_path_that_leads_to_a_session_counts():
    lines, _ = sample("jsonl/any.jsonl")
    records = read_all("jsonl", lines, "file", session_fields=("conversation", "run.name"))
    assert sessions_of(records) == ["r1", "file", "file", "r2"]


def test_headers_are_chosen_fields_as_texts_or_as_json():
    line = '{"user":{"id":"é"},"n":[1,{"a":null}],"none":null}'.encode()
    fields = (("user-id", "user.id"), ("n", "n"), ("x", "none"), ("y", "gone"))
    (record,) = read_all("jsonl", [line], "s", header_fields=fields)
    assert record.headers == (("user-id", "é".encode()), ("n", b'[1,{"a":null}]'))


def test_stream_without_a_name_or_with_one_that_is_not_utf8_is_refused():
    with pytest.raises(NoSessionError):
        read_all("jsonl", [b""], "")
    with pytest.raises(SessionKeyError):
        read_all("jsonl", [b""], os.fsdecode(b"\xff"))
