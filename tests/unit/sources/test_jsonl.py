import asyncio
import io
import itertools
import os

import pytest

from processor.sources.jsonl import read_lines, read_lines_aside


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
