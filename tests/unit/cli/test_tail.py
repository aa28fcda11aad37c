import asyncio
import json
from types import SimpleNamespace

import pytest

from processor.cli.tail import describe, lines
from processor.core.errors import StateError
from processor.wire_models import decode_chunk
from tests.builders import chunk_document


def chunk_line(**fields):
    return json.dumps(chunk_document(**fields)).encode()


def message(value, key=b"s", offset=7):
    return SimpleNamespace(topic="chunks", partition=3, offset=offset, key=key, value=value)


def printed(*messages, session=None, max_chunks=None, output="text"):
    async def stream():
        for each in messages:
            yield each
        if max_chunks is not None:
            pytest.fail("read on after the last chunk asked for")

    async def collect():
        return [line async for line in lines(stream(), session, max_chunks, output)]

    return asyncio.run(collect())


def test_chunk_is_one_line_without_its_content():
    line = describe(decode_chunk(chunk_line()))
    assert line == "s  t=1  1 records  1,037 tokens  tokens  records[3]@40-41"


def test_line_tells_what_is_special_of_a_chunk():
    special = {"over_budget": True, "clock": True, "final": True, "flush": "idle"}
    omitted = [{"offset": 1, "token_count": 1, "omitted": "too_large"}]
    line = describe(decode_chunk(chunk_line(**special, records=omitted)))
    assert "  idle, clock, final, over budget, record omitted  " in line


def test_empty_final_chunk_has_no_offsets():
    source = {"topic": "records", "partition": 3, "first_offset": None, "last_offset": None}
    line = describe(decode_chunk(chunk_line(records=[], source=source)))
    assert line.endswith("  records[3]")


def test_session_can_not_write_on_the_terminal():
    line = describe(decode_chunk(chunk_line(session="a\n\x1b[31m")))
    assert line.startswith(r"'a\n\x1b[31m'  t=1")


def test_json_is_the_chunk_to_the_byte():
    value = chunk_line().replace(b'"t": 1', b'"t":    1')
    assert printed(message(value), output="json") == [value]


def test_other_sessions_are_left_out_and_not_counted():
    other = message(chunk_line(session="o"), key=b"o")
    mine = [message(chunk_line(t=t)) for t in (1, 2)]
    found = printed(other, mine[0], other, mine[1], session="s", max_chunks=2)
    assert [line.split("  ")[1] for line in found] == ["t=1", "t=2"]


def test_end_comes_after_as_many_chunks_as_asked_for():
    assert len(printed(message(chunk_line()), message(chunk_line()), max_chunks=2)) == 2


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize("value", [b"{}", b"", None, b"\xff"])
def test_message_that_is_no_chunk_is_named(value, output):
    with pytest.raises(StateError, match=r"^chunks\[3\]@7: "):
        printed(message(value), output=output)
