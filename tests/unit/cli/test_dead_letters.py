import json

import pytest
from click.testing import CliRunner

from processor.cli import dead_letters as module
from processor.cli.dead_letters import dead_letters
from processor.cli.letter_view import document_of, group_text, row_of, row_text, shown
from processor.protocol.letters import Letter
from tests.history import Message

HEADERS = [
    ("trace", b"\xff"),
    ("null", None),
    ("__connect.errors.topic", b"records"),
    ("__connect.errors.partition", b"3"),
    ("__connect.errors.offset", b"42"),
    ("processor-reason", b"no-key"),
]


def letter(value=b"secret \x1b[31mwords", key=b"\xffkey", headers=HEADERS):
    return Letter("dead", 1, Message(17, key, value, 1_764_500_000_000, headers))


def run(*arguments):
    return CliRunner().invoke(dead_letters, arguments)


@pytest.fixture
def one_letter(monkeypatch):
    """A dead-letter topic with one letter, at dead[1]@17."""

    async def read_letter(settings, partition, offset):
        return letter() if (partition, offset) == (1, 17) else None

    monkeypatch.setattr(module, "read_letter", read_letter)


def test_row_has_no_content_and_no_key():
    row = row_of(letter(), is_redriven=True)
    line = row_text(row)
    assert line == (
        "dead[1]@17  2025-11-30T10:53:20.000Z  no-key  records[3]@42  17 bytes  redriven"
    )
    assert "secret" not in json.dumps(row)
    assert "key" not in json.dumps(row).replace("no-key", "")


def test_row_of_an_end_that_came_back_says_so():
    headers = [*HEADERS, ("processor-replay-count", b"2")]
    line = row_text(row_of(letter(None, headers=headers), is_redriven=False))
    assert line.endswith("end of session  sent again 2 times before")


def test_group_is_one_line():
    group = {"reason": "no-key", "origin": "records[3]", "redriven": False, "count": 1_234}
    assert group_text(group) == "1,234  no-key  from records[3]"


def test_shown_letter_harms_no_terminal():
    lines = shown(letter()).splitlines()
    assert lines[:4] == [
        "dead[1]@17  2025-11-30T10:53:20.000Z",
        "  reason: no-key",
        "  origin: records[3]@42",
        r"  key: b'\xffkey'",
    ]
    assert r"  header trace: b'\xff'" in lines
    assert "  header null: -" in lines
    assert lines[-1] == r"  value: 'secret \x1b[31mwords'"


def test_document_has_all_of_it():
    found = document_of(letter())
    assert (found["key"], found["value"]) == ({"base64": "/2tleQ=="}, "secret \x1b[31mwords")
    assert found["headers"][:2] == [["trace", {"base64": "/w=="}], ["null", None]]


@pytest.mark.parametrize("place", [["1", "17"], ["1@17"], ["dead[1]@17"], ["a.b-c_d[1]@17"]])
def test_place_is_as_the_list_prints_it_or_two_numbers(one_letter, place):
    done = run("show", *place, "--raw")
    assert done.stdout_bytes == letter().record.value


@pytest.mark.parametrize("place", [["1"], ["dead"], ["dead[1]17"], ["1", "17", "3"], ["-1@3"]])
def test_any_other_place_is_a_usage_error(one_letter, place):
    assert run("show", "--", *place).exit_code == 2


def test_place_without_a_letter_is_told(one_letter):
    done = run("show", "1@18")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no dead letter at records.dead-letter[1]@18" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [[], ["--session", "a", "--session-field", "b"], ["--session", ""], ["--session", "\udcff"]],
)
def test_redrive_wants_one_way_to_a_session(arguments):
    assert run("redrive", *arguments).exit_code == 2
