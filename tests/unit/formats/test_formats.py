import pytest

from processor.core.errors import ConfigError, NoSessionError
from processor.formats import FORMATS, detect_format, format_named
from processor.formats.format import FormatOptions, SessionRecord


def test_unknown_lines_are_json_lines_which_take_anything():
    assert detect_format([b"\xff no JSON at all", b""]) == "jsonl"


def test_a_line_belongs_to_the_session_of_its_stream():
    lines = format_named("jsonl", FormatOptions(session="s1"), {})
    assert list(lines.read(b"a line")) == [SessionRecord("s1", b"a line")]


def test_a_line_of_no_session_is_refused():
    with pytest.raises(NoSessionError):
        format_named("jsonl", FormatOptions(), {}).read(b"{}")


def test_an_unknown_format_names_those_there_are():
    with pytest.raises(ConfigError, match="choose from"):
        format_named("xml", FormatOptions(), {})


def test_the_last_format_takes_anything():
    assert list(FORMATS)[-1] == "jsonl"
