r"""Lines of a JSON Lines file, byte for byte, and the session that a line belongs to.

A line ends at ``\n`` and nowhere else: U+2028, U+0085 and ``\r`` occur inside transcripts and are
content. A last line without ``\n`` is a line.
"""

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from processor.core.errors import NoSessionError, SessionKeyError

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


@dataclass(frozen=True, slots=True)
class SessionRule:
    """Which session a line belongs to: the one named, the one it names, or its file's name."""

    name: str | None = None
    field: str | None = None

    def session_for(self, line: bytes, file: str, number: int) -> str:
        """Return the session of a line.

        Args:
            line: The line.
            file: Where it stands.
            number: Its number there, from 0; errors count from 1, as editors do.

        Raises:
            NoSessionError: There is none.
            SessionKeyError: It has no UTF-8 form.
        """
        where = f"{file}:{number + 1}"
        if self.field is not None:
            return session_of(line, self.field, where)
        return _checked(Path(file).stem if self.name is None else self.name, where)


def session_of(line: bytes, path: str, where: str) -> str:
    """Return the session id that a JSON line holds at a dotted path.

    Args:
        line: One JSON object.
        path: Keys from the outside in, such as ``metadata.session_id``.
        where: Names the line in an error: file and line number.

    Raises:
        NoSessionError: The line isn't JSON, or holds no text or whole number at ``path``.
        SessionKeyError: The text has no UTF-8 form (a lone surrogate).
    """
    try:
        value = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        msg = f"{where}: no session at {path!r}, since the line isn't JSON ({error})"
        raise NoSessionError(msg) from error
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, str | int):
        msg = f"{where}: no session at {path!r}; give every line one, or use --session NAME"
        raise NoSessionError(msg)
    return _checked(str(value), where)


def _checked(session: str, where: str) -> str:
    if not session:
        msg = f"{where}: the session is empty; use --session NAME or --session-field PATH"
        raise NoSessionError(msg)
    try:
        session.encode()
    except UnicodeEncodeError as error:
        msg = f"{where}: the session {session!a} can't be written as UTF-8"
        raise SessionKeyError(msg) from error
    return session
