import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
from click.testing import CliRunner

from processor.asyncapi import asyncapi_document
from processor.cli import cli
from processor.core.chunks import Chunk, FlushReason
from processor.core.errors import NoSessionError
from processor.core.policy import ChunkPolicy
from processor.protocol.dead_letter import dead_letter
from processor.schema import chunk_schema
from processor.wire import ChunkEncoder, chunk_headers
from tests.builders import chunk_lines, told_records

COMMITTED = Path(__file__).parents[2] / "docs" / "schema"
VALIDATOR = jsonschema.Draft202012Validator(chunk_schema())
POLICY = ChunkPolicy()
LINE = json.loads(chunk_lines(b"w0")[0])
CLOSED = Chunk(
    session="s",
    t=1,
    records=tuple(told_records(b"1")),
    token_count=1,
    over_budget=True,
    flush=FlushReason.OVERSIZE,
    final=False,
    clock=True,
    previous_digest=bytes(32),
    digest=bytes(32),
    next_offset=1,
)


@pytest.mark.parametrize(
    ("options", "name"), [([], "chunk.json"), (["--asyncapi"], "asyncapi.json")]
)
def test_what_is_committed_is_that_of_the_models(options, name):
    printed = CliRunner().invoke(cli, ["schema", *options]).stdout
    command = " ".join(["processor schema", *options])
    assert printed == (COMMITTED / name).read_text(), f"{command} > docs/schema/{name}"


def test_messages_have_the_headers_that_the_asyncapi_document_tells_of():
    messages = asyncapi_document()["components"]["messages"]
    assert list(messages["chunks"]["headers"]["properties"]) == [
        it for it, _ in chunk_headers(CLOSED)
    ]
    letter = dead_letter(
        SimpleNamespace(key=None, value=b"x", headers=(), timestamp=1, offset=7),
        "records",
        0,
        NoSessionError("x"),
    )
    assert list(messages["deadLetters"]["headers"]["properties"]) == [
        it for it, _ in letter.headers
    ]


def test_the_schema_is_one_and_says_what_each_field_is():
    jsonschema.Draft202012Validator.check_schema(chunk_schema())
    for name, model in chunk_schema()["$defs"].items():
        for field, told in model["properties"].items():
            assert told["description"].endswith("."), f"{name}.{field}"


@pytest.mark.parametrize("value", [b'{"a":1}', b"null", b"text", b"\xff", b""])
def test_whatever_a_record_is_its_chunk_is_valid(value):
    (line,) = chunk_lines(value)
    VALIDATOR.validate(json.loads(line))


def test_a_chunk_with_headers_and_one_without_its_record_are_valid():
    headers = (("a", b"1"), ("b", b"\xff"), ("c", None))
    closed = replace(CLOSED, records=tuple(told_records(b"1", headers=headers)))
    encoder = ChunkEncoder(POLICY, "words", "records", 0)
    for line in (encoder.encode(closed), encoder.encode_omitted(closed)):
        VALIDATOR.validate(json.loads(line))


RECORD = LINE["records"][0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"t": "1"},
        {"digest": "00"},
        {"records": [RECORD | {"base64": ""}]},
        {"records": [{key: it for key, it in RECORD.items() if key != "text"}]},
        {"records": [RECORD | {"text": None}]},
        {"source": None},
    ],
)
def test_what_is_no_chunk_is_not_valid(wrong):
    assert VALIDATOR.is_valid(LINE)
    assert not VALIDATOR.is_valid(LINE | wrong)


def test_fields_that_come_later_are_left_aside():
    assert VALIDATOR.is_valid(LINE | {"later": 1})
