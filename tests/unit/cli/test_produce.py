"""What the verb takes for files, sessions and folders."""

import pytest
from click.testing import CliRunner

from processor.cli.produce import produce, transcripts_at


def test_folder_stands_for_the_transcripts_below_it_in_order(tmp_path):
    (tmp_path / "b" / "c").mkdir(parents=True)
    for name in ("b/c/2.jsonl", "b/1.jsonl", "a.jsonl", "no.txt"):
        (tmp_path / name).write_bytes(b"x\n")
    expected = [str(tmp_path / it) for it in ("a.jsonl", "b/1.jsonl", "b/c/2.jsonl")]
    assert list(transcripts_at(str(tmp_path))) == expected


def test_folder_without_transcripts_is_told(tmp_path):
    (tmp_path / "no.txt").write_bytes(b"x\n")
    result = CliRunner().invoke(produce, [str(tmp_path)])
    assert result.exit_code == 1
    assert "no *.jsonl in this folder" in result.stderr


@pytest.mark.parametrize("session", ["", "\udcff"])
def test_session_that_can_not_be_a_key_is_refused(session):
    result = CliRunner().invoke(produce, ["-", "--session", session])
    assert result.exit_code == 2
    assert "--session" in result.stderr


def test_standard_input_needs_a_session():
    result = CliRunner().invoke(produce, ["-"])
    assert result.exit_code == 2
    assert "--session-field PATH" in result.stderr


def test_file_that_is_not_there_is_named(tmp_path):
    result = CliRunner().invoke(produce, [str(tmp_path / "gone.jsonl")])
    assert result.exit_code == 1
    assert "gone.jsonl" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--follow", "--end", "a"], "neither --end nor standard input"),
        (["--follow", "-"], "neither --end nor standard input"),
        (["--name", "a", "-"], "--name goes with --follow"),
        (["--follow", "--name", "a/b", "a"], "letters, digits"),
        (["--format", "nonsense", "a"], "jsonl"),
    ],
)
def test_what_does_not_go_together_is_told(arguments, why):
    result = CliRunner().invoke(produce, arguments)
    assert result.exit_code == 2
    assert why in result.stderr
