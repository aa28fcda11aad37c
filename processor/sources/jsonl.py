r"""Lines of a JSON Lines file, byte for byte.

A line ends at ``\n`` and nowhere else: U+2028, U+0085 and ``\r`` occur inside transcripts and are
content. A last line without ``\n`` is a line.
"""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Iterator
from typing import BinaryIO, Final

# Lines read ahead of their use: few, since one may be megabytes long.
_READ_AHEAD: Final = 64


def read_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    r"""Yield each line's number, from 0, and its bytes without the ``\n``, one in memory at a time.

    Empty lines come too, so that a number always is a place in the file.
    """
    for number, line in enumerate(stream):
        yield number, line.removesuffix(b"\n")


async def read_lines_aside(stream: BinaryIO) -> AsyncIterator[tuple[int, bytes]]:
    """Yield what ``read_lines`` does, reading in a thread: a pipe may be silent for hours.

    The thread is a daemon: a pending read can't be cancelled, and must not hold up the exit.
    """
    loop = asyncio.get_running_loop()
    lines: asyncio.Queue[tuple[int, bytes] | BaseException | None] = asyncio.Queue()
    room = threading.Semaphore(_READ_AHEAD)

    def pump() -> None:
        end: BaseException | None = None
        # The loop is closed when nobody listens any more.
        with contextlib.suppress(RuntimeError):
            try:
                for line in read_lines(stream):
                    room.acquire()
                    loop.call_soon_threadsafe(lines.put_nowait, line)
            except OSError as error:
                end = error
            loop.call_soon_threadsafe(lines.put_nowait, end)

    threading.Thread(target=pump, daemon=True).start()
    while (line := await lines.get()) is not None:
        if isinstance(line, BaseException):
            raise line
        room.release()
        yield line
