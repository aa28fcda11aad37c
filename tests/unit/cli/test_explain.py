import asyncio
import json

import click
import pytest

from processor.cli.explain import explained, time_line
from processor.cli.explain_view import open_text, row_text, ruler_text
from processor.core.policy import ChunkPolicy, OrIdle
from processor.proof.rules import Logged
from processor.proof.seen import Seen
from tests.history import chunks_of, log_of

POLICY = ChunkPolicy(max_tokens=10, flush=OrIdle(30))
ITEMS = ("a:" + "x" * 20, "a:secret words", "b:other", "a:" + "y" * 28, "a:" + "z" * 60, "a:last")


class Part:
    """A session's part of one partition, as ``SessionLog`` gives it."""

    session, records_topic, chunks_topic = "a", "records", "chunks"

    def __init__(self, number, *items, out=None, gone=0):
        self.number = number
        self._log = log_of(*items)
        self._out = chunks_of(self._log, POLICY, source=("records", number))[gone:out]

    async def chunks(self):
        for message in self._out:
            if message.key == b"a":
                yield Seen(message)

    async def messages_from(self, offset, _window):
        for it in self._log:
            if it.key == b"a" and it.offset >= offset:
                yield Logged(it.offset, it.timestamp, it.timestamp, it.value)


def logs(*parts):
    return {it.number: it for it in parts}


def document(t, *items, excerpt=0, out=None):
    (found,) = asyncio.run(explained(logs(Part(3, *items or ITEMS, out=out)), t, excerpt))
    return found


def rows(*parts):
    async def collect():
        return [row async for row in time_line(logs(*parts))]

    return asyncio.run(collect())


def test_chunk_is_a_ruler_with_what_did_not_fit():
    lines = click.unstyle(ruler_text(document(1))).splitlines()
    assert lines[0] == "a  t=1  2 records of records[3]  (chunk at offset 0)"
    assert lines[1].startswith(
        "  @0  1970-01-01T00:16:40.000Z         20 bytes        5        5  "
    )
    assert lines[1].endswith("█" * 20 + "·" * 20)
    assert lines[2].endswith("·" * 20 + "█" * 12 + "·" * 8)
    assert lines[3].strip() == "8 of 10 tokens  80%"
    assert lines[4] == (
        "  closed: tokens: the record at records[3]@3 of 7 tokens would make it 15 tokens, "
        "5 tokens above 10 tokens"
    )


def test_content_is_shown_only_as_far_as_asked():
    assert "secret" not in json.dumps(document(1)) + ruler_text(document(1))
    shown = document(1, excerpt=6)
    assert [it["excerpt"] for it in shown["records"]] == ["x" * 6, "secret"]
    assert ruler_text(shown).splitlines()[2].endswith("  secret")


def test_excerpt_can_not_write_on_the_terminal():
    shown = document(1, "a:\x1b[31m\n", "a.", excerpt=9)
    assert shown["records"][0]["excerpt"] == r"'\x1b[31m\n'"


@pytest.mark.parametrize(
    ("t", "told"),
    [
        (2, "tokens: the record at records[3]@4 of 15 tokens would make it 22 tokens, "),
        (3, "oversize: its one record alone has 15 tokens, 5 tokens above 10 tokens"),
    ],
)
def test_closing_is_a_sentence(t, told):
    assert f"closed: {told}" in click.unstyle(ruler_text(document(t)))


def test_record_that_is_in_no_chunk_yet_is_found_in_the_log():
    found = document(1, "a:" + "x" * 20, "a:" + "y" * 28, out=1)["closed_by"]
    assert (found["message"]["offset"], found["excess"]) == (1, 2)


def test_end_is_found_in_the_log_by_an_empty_final_chunk_too():
    items = ("a:" + "x" * 60, "b:x", "a.", "a:more", "a.")
    found = document(2, *items)
    assert found["records"] == []
    assert found["closed_by"]["message"]["offset"] == 2
    assert click.unstyle(ruler_text(found)).endswith(
        "end, final: the end of session at records[3]@2 ended it"
    )


def test_end_is_found_behind_records_whose_chunk_is_deleted():
    part = Part(3, "a:" + "x" * 60, "a.", "b:x", "b.", gone=1)
    (found,) = asyncio.run(explained(logs(part), 2, 0))
    assert found["closed_by"]["message"]["offset"] == 1


def test_session_is_a_time_line_with_what_is_open():
    first, second, third, last = rows(Part(3, *ITEMS))
    assert (first["t"], first["record_count"], first["token_count"]) == (1, 2, 8)
    assert (second["pause_ms"], second["first_offset"]) == (2000, 3)
    assert third["over_budget"]
    assert (last["open_record_count"], last["first_offset"]) == (1, 5)
    assert click.unstyle(row_text(second)) == (
        "t=2      1970-01-01T00:16:43.000Z       +0.0 s       1 records        7 of 10 tokens  70%"
        "  tokens  records[3]@3-3  2.0 s after the one before"
    )
    assert open_text(last) == (
        "open     1970-01-01T00:16:45.000Z  1 records in no chunk yet, from records[3]@5 on"
    )


def test_empty_final_chunk_is_a_row_without_times():
    *_, last = rows(Part(3, "a:" + "x" * 60, "a."))
    assert last["first_timestamp_ms"] is None
    assert "end, final  records[3]" in click.unstyle(row_text(last))


def test_session_on_two_partitions_is_told(capsys):
    parts = (Part(3, *ITEMS), Part(0, *ITEMS))
    assert [it["partition"] for it in rows(*parts)] == [3, 3, 3, 0, 0, 0, 3, 0]
    assert len(asyncio.run(explained(logs(*parts), 1, 0))) == 2
    told = "warning: session 'a' is 2 sessions, one on each of chunks[0], chunks[3]: "
    assert capsys.readouterr().err.count(told) == 2


def test_session_where_its_key_does_not_belong_is_told(capsys):
    rows(Part(3), Part(0, *ITEMS))
    assert "is on chunks[0], not on [3]" in capsys.readouterr().err


def test_chunk_that_is_not_there_is_told_with_what_there_is():
    with pytest.raises(click.ClickException, match=r"no chunk t=9; chunks\[3\] has t=1 to t=3"):
        document(9)
    with pytest.raises(click.ClickException, match="none at all in chunks"):
        document(1, "b:x", "b.")


def test_session_that_is_nowhere_is_told():
    with pytest.raises(click.ClickException, match=r"no record in records\[3\], where"):
        rows(Part(3, "b:x"))


def test_session_without_a_chunk_shows_what_is_open():
    (row,) = rows(Part(3, "a:x", "a:y"))
    assert row["open_record_count"] == 2
