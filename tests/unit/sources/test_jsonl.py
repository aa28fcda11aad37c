import asyncio
import io
import itertools
import os

import pytest

from processor.core.errors import NoSessionError, SessionKeyError
from processor.sources.jsonl import SessionRule, read_lines, read_lines_aside, session_of


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"\n\na\n\n", [b"", b"", b"a", b""]),
        (b"a\r\nb\rc\n", [b"a\r", b"b\rc"]),
        (
            "a\u2028b\u0085c\u2029d\x0b\x0c\x1c\n".encode(),
            ["a\u2028b\u0085c\u2029d\x0b\x0c\x1c".encode()],
        ),
        (b"\x00\xff\n", [b"\x00\xff"]),
    ],
)
def test_line_ends_at_the_line_feed_alone(content, lines):
    expected = list(enumerate(lines))
    assert list(read_lines(io.BytesIO(content))) == expected

    async def aside():
        return [line async for line in read_lines_aside(io.BytesIO(content))]

    assert asyncio.run(aside()) == expected


class Endless(io.RawIOBase):
    """A file without an end that counts how far it was read."""

    def __init__(self):
        self.read_bytes = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        buffer[:] = b"line\n" * (len(buffer) // 5) + b"." * (len(buffer) % 5)
        self.read_bytes += len(buffer)
        return len(buffer)


def test_endless_file_is_read_as_far_as_asked():
    endless = Endless()
    taken = itertools.islice(read_lines(io.BufferedReader(endless)), 1000)
    assert sum(1 for _ in taken) == 1000
    assert endless.read_bytes < 3 * io.DEFAULT_BUFFER_SIZE


def test_line_of_a_pipe_comes_before_the_next_is_written():
    async def alternate():
        read, write = os.pipe()
        with os.fdopen(read, "rb") as stream, os.fdopen(write, "wb", buffering=0) as writer:
            lines = read_lines_aside(stream)
            writer.write(b"one\n")
            first = await anext(lines)
            writer.write(b"two\n")
            second = await anext(lines)
            writer.close()
            return [first, second, *[line async for line in lines]]

    assert asyncio.run(asyncio.wait_for(alternate(), 30)) == [(0, b"one"), (1, b"two")]


def test_fault_of_a_stream_read_aside_reaches_the_caller():
    class Broken(Endless):
        def readinto(self, _):
            raise OSError("disk gone")  # noqa: EM101, TRY003  # the fault itself

    async def read():
        return [line async for line in read_lines_aside(io.BufferedReader(Broken()))]

    with pytest.raises(OSError, match="disk gone"):
        asyncio.run(read())


@pytest.mark.parametrize(
    ("line", "path", "session"),
    [
        (b'{"s":"a"}', "s", "a"),
        (b'{"m":{"s":{"id":"a b"}},"s":"x"}', "m.s.id", "a b"),
        (b'{"s":17}', "s", "17"),
        ('{"s":"\u2028é"}'.encode(), "s", "\u2028é"),
        (b' {"s":"a"}\r', "s", "a"),
    ],
)
def test_session_is_what_stands_at_the_path(line, path, session):
    assert session_of(line, path, "f:1") == session


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"\xff",
        b"[1]",
        b"3",
        b'{"t":"a"}',
        b'{"s":""}',
        b'{"s":null}',
        b'{"s":true}',
        b'{"s":1.5}',
        b'{"s":["a"]}',
        b'{"s":{"s":"a"}}',
        b"[" * 100_000,
    ],
)
def test_line_without_a_session_is_named(line):
    with pytest.raises(NoSessionError, match=r"^talk\.jsonl:12: "):
        session_of(line, "s", "talk.jsonl:12")


def test_path_through_a_value_that_is_no_object_leads_nowhere():
    with pytest.raises(NoSessionError):
        session_of(b'{"s":"a"}', "s.t", "f:1")


def test_lone_surrogate_is_no_session():
    with pytest.raises(SessionKeyError, match=r"^f:1: "):
        session_of(b'{"s":"\\ud83d"}', "s", "f:1")


def test_rule_takes_the_name_then_the_field_then_the_file():
    line = b'{"s":"field"}'
    assert SessionRule().session_for(line, "a/b/talk.one.jsonl", 0) == "talk.one"
    assert SessionRule(name="name").session_for(line, "talk.jsonl", 0) == "name"
    assert SessionRule(field="s").session_for(line, "talk.jsonl", 0) == "field"


def test_rule_counts_lines_as_editors_do():
    with pytest.raises(NoSessionError, match=r"^talk\.jsonl:1: "):
        SessionRule(field="s").session_for(b"{}", "talk.jsonl", 0)


def test_empty_name_and_a_name_that_is_not_utf8_are_refused():
    with pytest.raises(NoSessionError):
        SessionRule(name="").session_for(b"", "f", 0)
    with pytest.raises(SessionKeyError):
        SessionRule().session_for(b"", os.fsdecode(b"\xff.jsonl"), 0)
