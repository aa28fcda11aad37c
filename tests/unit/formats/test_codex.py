import pytest

from processor.core.errors import NoSessionError
from processor.formats import detect_format
from tests.unit.formats.samples import read_all, sample, sessions_of

CHILD = "0195506e-0000-7c72-a134-a4c2de66058c"


def test_fork_that_replays_its_parents_header_stays_itself():
    lines, _ = sample("codex/*.jsonl")
    assert sessions_of(read_all("codex", lines, "other")) == [CHILD] * 4


def test_torn_header_leaves_the_id_in_the_files_name():
    lines, stem = sample("codex/*.jsonl")
    lines = [lines[0][:40], *lines[1:]]
    assert sessions_of(read_all("codex", lines, stem)) == [CHILD] * 4


def test_torn_header_of_a_file_of_another_name_leaves_that_name():
    lines, _ = sample("codex/*.jsonl")
    lines = [lines[0][:40], *lines[1:]]
    assert sessions_of(read_all("codex", lines, "mine")) == ["mine"] * 4


def test_empty_line_before_the_header_decides_nothing():
    lines, _ = sample("codex/*.jsonl")
    assert sessions_of(read_all("codex", [b"", *lines], "mine")) == ["mine", *[CHILD] * 4]


def test_first_versions_wrote_the_bare_header():
    lines = [
        b'{"id":"old","timestamp":"2025-05-01T08:00:00.000Z","instructions":"","git":{}}',
        b'{"record_type":"state"}',
        b'{"type":"message","id":"m1","role":"user","content":[]}',
    ]
    assert detect_format(lines) == "codex"
    assert sessions_of(read_all("codex", lines, "file")) == ["old"] * 3


def test_lines_of_no_known_session_are_refused_until_a_header_comes():
    lines, _ = sample("codex/*.jsonl")
    memory = {}
    with pytest.raises(NoSessionError, match="from its first line"):
        read_all("codex", lines[2:], memory=memory)
    assert memory == {}
    assert sessions_of(read_all("codex", lines[:1], memory=memory)) == [CHILD]


def test_line_tells_when_it_was_written():
    lines, stem = sample("codex/*.jsonl")
    times = [dict(it.headers)["event-time"] for it in read_all("codex", lines, stem)]
    assert times[1:3] == [b"2026-03-01T08:00:00.100Z", b"2026-03-01T07:00:01.000Z"]
