import io
import itertools
import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from click.testing import CliRunner

from processor.cli.chunk import chunk, chunk_records, records_of
from processor.core.digest import next_digest
from processor.core.errors import NoSessionError
from processor.core.policy import ChunkPolicy
from processor.counters import CharsOverFour
from processor.feeding.choice import Choice, SessionRule
from processor.sources.jsonl import read_lines
from processor.wire_models import decode_chunk
from tests.builders import WordCounter

CORPUS = os.environ.get("PROCESSOR_TEST_CORPUS")
DATA = Path(__file__).parents[2] / "data"
ODD_LINES = {
    "line separator": '{"a":"\u2028"}'.encode(),
    "next line": '{"a":"\u0085"} \u0085'.encode(),
    "carriage return": b'{"a":1}\r',
    "only a carriage return": b"\r",
    "other breaks": b"a\x0bb\x0cc\x1cd\x1ee",
    "empty": b"",
    "spaces": b"  ",
    "not json": b"plain text",
    "invalid utf-8": b'{"a":"\xff"}',
    "half a character": b"\xe2\x80",
    "nul": b"\x00",
    "byte order mark": b'\xef\xbb\xbf{"a":1}',
    "lone surrogate": b'{"a":"\\ud83d"}',
    "nan": b'{"a":NaN}',
    "doubled key": b'{"a":1,"a":2}',
    "large number": b"1" * 5000,
    "number as written": b'{"a":1.10e+2,"b":-0}',
    "inner spaces": b'{ "a" :\t1 }',
    "nested 60": b"[" * 60 + b"]" * 60,
    "nested 61": b"[" * 61 + b"]" * 61,
    "nested 100,000": b"[" * 100_000 + b"]" * 100_000,
    "opened 100,000": b'{"a":' * 100_000,
}


def cut(lines, file="some/talk.jsonl", *, rule=None, max_tokens=5000, counter=None):
    choice = Choice(rule or SessionRule(name="s"), "jsonl", is_session_required=True)
    records = records_of(lines, file, choice, "jsonl")
    policy = ChunkPolicy(max_tokens=max_tokens)
    return chunk_records(records, file, policy, counter or CharsOverFour())


def chunked(data, *, field=None, **arguments):
    rule = SessionRule(name="s") if field is None else SessionRule(field=field)
    return list(cut(read_lines(io.BytesIO(data)), rule=rule, **arguments))


def joined(encoded):
    """The file that chunks came from: records by offset, as lines."""
    records = [it for line in encoded for it in decode_chunk(line).records]
    assert sorted(it.offset for it in records) == list(range(len(records)))
    return [it.value_bytes for it in sorted(records, key=lambda it: it.offset)]


def invoke(*args, stdin=None):
    result = CliRunner().invoke(chunk, [str(it) for it in args], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def file(tmp_path):
    return tmp_path / "talk.one.jsonl"


@pytest.mark.parametrize("name", ODD_LINES)
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_odd_line_comes_back_to_the_byte(name, end):
    lines = [b'{"a":1}', ODD_LINES[name], b"last"]
    assert joined(chunked(b"\n".join(lines) + end)) == lines


@pytest.mark.parametrize("name", ODD_LINES)
def test_chunk_with_an_odd_line_is_one_line_of_strict_json(name):
    def refuse(constant):
        pytest.fail(f"{constant} is not JSON")

    for line in chunked(ODD_LINES[name] + b"\nx"):
        assert b"\n" not in line
        json.loads(line.decode(), parse_constant=refuse, parse_int=str)


def test_empty_lines_are_records():
    assert joined(chunked(b"\n\na\n\n")) == [b"", b"", b"a", b""]
    assert chunked(b"") == []


def test_line_of_30_megabytes_is_a_chunk_by_itself():
    line = b'{"text":"' + b"x" * 30_000_000 + b'"}'
    one, two, three = chunked(b"a\n" + line + b"\nb")
    assert joined([one, two, three]) == [b"a", line, b"b"]
    assert decode_chunk(two).over_budget


def test_chunk_has_the_form_that_a_worker_gives_it():
    (line,) = chunked(b'{"a": 1}\nplain')
    digest = next_digest(sha256(b"s").digest(), [b'{"a": 1}', b"plain"])
    policy = {
        "flush_tokens": 5000,
        "idle_s": 0,
        "max_age_s": 0,
        "max_chunk_bytes": 900_000,
        "max_chunk_records": 10_000,
    }
    expected = {
        "schema_version": 1,
        "session": "s",
        "t": 1,
        "records": [
            {"offset": 0, "timestamp_ms": None, "token_count": 2, "value": {"a": 1}},
            {"offset": 1, "timestamp_ms": None, "token_count": 2, "text": "plain"},
        ],
        "token_count": 4,
        "token_counter": "chars_over_four",
        "max_tokens": 5000,
        "over_budget": False,
        "policy": policy,
        "flush": "end",
        "final": False,
        "source": {"topic": "talk.jsonl", "partition": 0, "first_offset": 0, "last_offset": 1},
        "previous_digest": sha256(b"s").hexdigest(),
        "digest": digest.hex(),
    }
    assert list(json.loads(line).items()) == list(expected.items())


def test_open_chunks_close_in_the_order_of_their_first_records():
    lines = b'{"s":"c"}\n{"s":"a"}\n{"s":"b"}\n{"s":"a"}\n{"s":"c"}\n'
    found = [decode_chunk(it) for it in chunked(lines, field="s")]
    assert [(it.session, it.t, len(it.records)) for it in found] == [
        ("c", 1, 2),
        ("a", 1, 2),
        ("b", 1, 1),
    ]


def test_sessions_of_one_file_count_t_by_themselves():
    lines = b"".join(b'{"s":"%d"}\n' % (number % 3) for number in range(30))
    found = [decode_chunk(it) for it in chunked(lines, field="s", max_tokens=6)]
    for session in "012":
        assert [it.t for it in found if it.session == session] == [1, 2, 3, 4, 5]


def test_endless_file_is_chunked_with_one_open_chunk_in_memory():
    held = []

    def lines():
        for number in itertools.count():
            held.append(number)
            yield number, b"one two"

    endless = cut(lines(), max_tokens=10, counter=WordCounter())
    for t, line in enumerate(itertools.islice(endless, 1000), 1):
        assert decode_chunk(line).t == t
        assert len(held) == 5 * t + 1


def test_line_without_a_session_is_named_and_chunks_before_it_are_out():
    lines = read_lines(io.BytesIO(b'{"s":"a"}\n{"s":"a"}\n{"t":"a"}\n'))
    found = cut(lines, "talk.jsonl", rule=SessionRule(field="s"), max_tokens=3)
    assert decode_chunk(next(found)).t == 1
    with pytest.raises(NoSessionError, match=r"^talk\.jsonl:3: no session at 's'"):
        next(found)


def test_session_is_the_name_of_the_file_without_its_extension(file):
    file.write_bytes(b"x\n")
    found = decode_chunk(invoke(file).stdout_bytes)
    assert (found.session, found.source.topic) == ("talk.one", "talk.one.jsonl")


@pytest.mark.parametrize(
    ("sample", "args", "sessions"),
    [
        ("codex/*", [], {"0195506e-0000-7c72-a134-a4c2de66058c"}),
        ("codex/*", ["--session", "me"], {"me"}),
        ("codex/*", ["--session-field", "payload.forked_from_id"], None),
        ("claude/agent-*", [], {"5a0d9f6e-1c52-4f0e-9a35-0d8f4a6c1b77/agent-a1b2c3d"}),
        ("claude/agent-*", ["--format", "jsonl"], {"agent-a1b2c3d"}),
        ("claude/agent-*", ["--session-field", "uuid"], {"s1", "s2"}),
    ],
)
def test_sessions_are_the_tools_unless_a_person_says_otherwise(sample, args, sessions):
    (path,) = DATA.glob(sample)
    found = invoke(path, *args).stdout_bytes.splitlines()
    parent = "0195506d-ffff-7c72-a134-a4c2de66058c"
    assert {decode_chunk(it).session for it in found} == (sessions or {parent, path.stem})
    assert joined(found) == path.read_bytes().splitlines()


def test_line_that_holds_several_records_gives_each_its_place():
    found = invoke(DATA / "otel" / "exports.jsonl").stdout_bytes.splitlines()
    chunks = [decode_chunk(it) for it in found]
    assert [(it.session, len(it.records)) for it in chunks] == [("5a0d", 2), ("c1", 2)]
    assert len(joined(found)) == 4


def test_transcript_on_standard_input_names_its_session():
    (path,) = DATA.glob("pi/*")
    found = decode_chunk(invoke("-", stdin=path.read_bytes()).stdout_bytes)
    assert found.session == "ffae836b-0000-4060-ac13-7745215f90ff"
    result = CliRunner().invoke(chunk, ["-", "--format", "claude"], input=b"{}")
    assert isinstance(result.exception, NoSessionError)
    assert str(result.exception).startswith("-:1: ")


def test_options_choose_session_budget_and_counter(file):
    file.write_bytes(b"one\ntwo\n")
    args = ["--session", "me", "--max-tokens", "1", "--token-counter", "chars_over_four"]
    found = [decode_chunk(it) for it in invoke(file, *args).stdout_bytes.splitlines()]
    assert [(it.session, it.t, it.max_tokens) for it in found] == [("me", 1, 1), ("me", 2, 1)]


def test_standard_input_needs_a_session_and_names_no_file():
    result = invoke("-", stdin=b"x")
    assert result.exit_code == 2
    assert "--session-field PATH" in result.stderr
    found = decode_chunk(invoke("-", "--session", "s", stdin=b"a\n\nb").stdout_bytes)
    assert found.source.topic == "-"
    assert [it.value_bytes for it in found.records] == [b"a", b"", b"b"]


def test_file_that_is_not_there_is_named(tmp_path):
    result = invoke(tmp_path / "gone.jsonl")
    assert result.exit_code == 2
    assert "gone.jsonl" in result.stderr


def test_neither_faust_nor_aiokafka_is_imported():
    script = "import sys, processor.cli.chunk; print({'aiokafka', 'faust'} & sys.modules.keys())"
    done = subprocess.run(  # noqa: S603  # our own script
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout == "set()\n"


@pytest.mark.skipif(CORPUS is None, reason="PROCESSOR_TEST_CORPUS names no folder of *.jsonl")
def test_real_transcripts_come_back_to_the_byte():
    files = sorted(Path(CORPUS).glob("*.jsonl"))
    assert files
    for path in files:
        data = path.read_bytes()
        found = invoke(path).stdout_bytes.splitlines()
        assert b"\n".join(joined(found)) == data.removesuffix(b"\n"), path
        chunks = [decode_chunk(it) for it in found]
        for session in {it.session for it in chunks}:
            numbers = [it.t for it in chunks if it.session == session]
            assert numbers == list(range(1, len(numbers) + 1))
        assert all(it.token_count <= 5000 or len(it.records) == 1 for it in chunks)
