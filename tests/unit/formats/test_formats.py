import pytest

from processor.core.errors import ConfigError, NoSessionError
from processor.formats import FORMATS, detect_format, format_named
from processor.formats.format import FormatOptions, SessionRecord
from tests.unit.formats.samples import DATA, lines_of, read_all, sample, sessions_of


def test_unknown_lines_are_json_lines_which_take_anything():
    assert detect_format([b"\xff no JSON at all", b""]) == "jsonl"
    assert detect_format([]) == "jsonl"


@pytest.mark.parametrize("path", sorted(DATA.glob("*/*.jsonl")), ids=lambda it: it.parent.name)
def test_sample_is_detected_from_its_first_lines_and_from_the_same_after_noise(path):
    lines = lines_of(path)
    assert detect_format(lines) == path.parent.name
    assert detect_format([b"", b"{", *lines]) == path.parent.name


def test_first_value_that_any_format_knows_decides():
    (claude, *_), _ = sample("claude/5a*.jsonl")
    (codex, *_), _ = sample("codex/*.jsonl")
    assert detect_format([b"{}", codex, claude]) == "codex"
    assert detect_format([b"{}", claude, codex]) == "claude"


@pytest.mark.parametrize(
    "line",
    [
        b'{"type":"message","sessionId":"s"}',
        b'{"type":"session","id":"s"}',
        b'{"type":"event_msg"}',
        b'{"id":"s","timestamp":"t"}',
        b'{"type":"summary","summary":"s"}',
        b'{"resource":1}',
    ],
)
def test_line_that_merely_resembles_a_tools_is_not_taken_for_it(line):
    assert detect_format([line]) == "jsonl"


def test_a_line_belongs_to_the_session_of_its_stream():
    lines = format_named("jsonl", FormatOptions(session="s1"), {})
    assert list(lines.read(b"a line")) == [SessionRecord("s1", b"a line")]


def test_a_line_of_no_session_is_refused():
    with pytest.raises(NoSessionError):
        format_named("jsonl", FormatOptions(), {}).read(b"{}")


def test_an_unknown_format_names_those_there_are():
    with pytest.raises(ConfigError, match="choose from"):
        format_named("xml", FormatOptions(), {})


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_its_row_in_the_document(name):
    assert f"\n| `{name}` |" in (DATA.parents[1] / "docs" / "formats.md").read_text()


def test_the_last_format_takes_anything():
    assert list(FORMATS)[-1] == "jsonl"


def test_chosen_field_comes_before_the_tools_own_rule():
    lines, stem = sample("claude/5a*.jsonl")
    records = read_all("claude", lines, stem, session_fields=("gitBranch",))
    session = "5a0d9f6e-1c52-4f0e-9a35-0d8f4a6c1b77"
    assert sessions_of(records) == [session, "main", session, session, "main"]


@pytest.mark.parametrize("name", ["claude", "jsonl"])
def test_field_as_deep_as_it_can_be_read_costs_no_record(name):
    for depth in range(500, 1_100):
        line = b'{"cwd":' + b"[" * depth + b"]" * depth + b"}"
        (record,) = read_all(name, [line], "s", header_fields=(("cwd", "cwd"),))
        assert record.value == line


def test_text_that_is_no_time_is_no_event_time():
    lines = [b'{"sessionId":"s","timestamp":%s}' % it for it in (b'"soon"', b"1", b'"2026-03-01"')]
    assert all(it.headers == () for it in read_all("claude", lines))
