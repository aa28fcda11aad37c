import json

import click
import pytest
from click.testing import CliRunner

from processor.cli.rechunk import rechunk, timed
from processor.cli.rechunk_view import change_text
from processor.proof.diff import Change, Span


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """Run the verb in an empty folder on a file of these lines."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROCESSOR_TOKEN_COUNTER", "chars_over_four")
    monkeypatch.setenv("PROCESSOR_MAX_TOKENS", "10")

    def run(lines, *args):
        (tmp_path / "talk.jsonl").write_bytes(b"\n".join(lines))
        return CliRunner().invoke(rechunk, ["talk.jsonl", *args])

    return run


def turn(at, words):
    return json.dumps(
        {"type": "user", "sessionId": "s", "uuid": at, "timestamp": at, "message": words}
    ).encode()


def test_file_is_cut_as_the_settings_have_it_and_as_asked(ran):
    done = ran([b"x" * 28] * 4, "--max-tokens", "20")
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "- talk  t=1  [0]@0-0  1 records  7 of 10 tokens 70%  tokens"
    assert lines[2] == "+ talk  t=1  [0]@0-1  2 records  14 of 20 tokens 70%  tokens"
    assert lines[6:] == [
        "chunks:      4 -> 2 (-2)",
        "tokens:      28 -> 28",
        "fill ratio:  0.700 -> 0.700",
        "over budget: 0 -> 0",
        "boundaries:  2 kept, 2 gone, 0 new",
        "unchanged:   0 chunks",
        "times:       what closed by time or by the clock closes there again",
    ]


def test_json_is_a_document_for_each_chunk_and_one_for_the_sums(ran):
    done = ran([b"x" * 28] * 2, "--max-tokens", "20", "--output", "json")
    *changes, sums = map(json.loads, done.output.splitlines())
    assert [it["change"] for it in changes] == ["removed", "removed", "added"]
    assert changes[2]["last_offset"] == 1
    assert sums["old"]["chunk_count"] == 2
    assert sums["new"] == {
        "chunk_count": 1,
        "record_count": 2,
        "token_count": 14,
        "over_budget_count": 0,
        "fill_ratio": 0.7,
    }
    assert sums["boundaries"] == {"kept": 1, "removed": 1, "added": 0}
    assert sums["times"] == "as given"


def test_same_rule_changes_nothing(ran):
    lines = ran([b"x" * 28] * 4, "--max-tokens", "10").output.splitlines()
    assert lines[0] == "chunks:      4 -> 4 (+0)"


def test_times_are_those_that_the_format_finds_in_the_lines(ran):
    turns = [turn("2026-01-01T00:00:00Z", "a"), turn("2026-01-01T00:00:20Z", "b")]
    args = ("--max-tokens", "1000", "--format", "claude")
    done = ran(turns, "--idle-s", "10", *args)
    assert "chunks:      2 -> 2" in done.output, "one record each, by the budget and by the pause"
    done = ran(turns, "--idle-s", "30", *args)
    assert "chunks:      2 -> 1" in done.output
    assert "computed from the records' timestamps" in done.output


def test_time_that_is_none_is_left_out():
    headers = [
        ((("event-time", text),)) for text in (b"2026-01-01T00:00:60Z", b"1970-01-01t00:00:01z")
    ]
    rows = [("s", b"x", it) for it in headers] + [("s", b"x", ())]
    assert [at for _, _, at in timed(rows)] == [None, 1000, None]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["talk.jsonl"], "say what should be other, by one or more of --max-tokens"),
        (["--max-tokens", "5", "--format", "pi"], "--session-field and --format are for a FILE"),
        (["--max-tokens", "0"], "--max-tokens"),
    ],
)
def test_call_without_sense_is_refused(ran, tmp_path, args, told):
    (tmp_path / "talk.jsonl").write_bytes(b"x\n")
    done = CliRunner().invoke(rechunk, args)
    assert done.exit_code == 2
    assert told in done.output


def test_session_can_not_write_on_the_terminal():
    change = Change("\x1b[2J", is_added=True, span=Span(1, 1, 0, 0, 0, 10, "end"))
    row = {"change": "added", "session": change.session, "partition": 0, **change.span._asdict()}
    text = click.unstyle(change_text(row | {"first_offset": None}))
    assert text == r"+ '\x1b[2J'  t=1  [0]  0 records  0 of 10 tokens 0%  end"
