r"""One file that grows, read line by line, each line once; it knows no other file.

Of the file is known the position, before which all was taken in whole lines; what stands behind the
last ``\n`` waits for its own, however long. And a mark, by which the file is known to still be the
one that was read: a digest of its first bytes, and of the last ones before the position. What was
just read counts only if the mark holds *after* it was read: a file that is cut or written anew
meanwhile shows.
"""

import hashlib
import json
import logging
import os
import uuid
from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

import msgspec

from processor.core.errors import ChangelogError
from processor.sources.finding import Found, Identity, Stamp

_HEAD_BYTES: Final = 1024
_TAIL_BYTES: Final = 256
_Count = Annotated[int, msgspec.Meta(ge=0)]
_log = logging.getLogger(__name__)


class Lines(NamedTuple):
    """What a turn of a file brought.

    Attributes:
        values: Lines in order, without their line feed.
        first_number: The number of the first, from 0.
        has_more: Another turn will bring more, or look further.
    """

    values: Sequence[bytes]
    first_number: int
    has_more: bool


class _Held(msgspec.Struct):
    """A file as its entry tells it."""

    path: str
    home: str
    device: int
    inode: int
    position: _Count
    line_count: _Count
    mark: str
    format: str | None
    memory: dict[str, str]


class FollowedFile:
    """One file, and how far it was read.

    Args:
        found: Where it is.
        key: Names it for good; a new name when not given.

    Attributes:
        position: Bytes of whole lines that were taken.
        line_count: Those lines.
        format_name: What its lines are read as; kept here for whoever reads them.
        memory: What a format remembers; likewise.
        home: The name under which its first line was taken.
        stop_before: Number of the line that must not be taken, nor any after it.
        waits_for: Those that had this one's name before, and come first.
    """

    def __init__(self, found: Found, key: bytes | None = None) -> None:
        self.key = uuid.uuid4().hex.encode() if key is None else key
        self.path = found.path
        self.identity = found.identity
        self.stamp: Stamp | None = None
        self.stop_before: int | None = None
        self.waits_for: tuple[FollowedFile, ...] = ()
        self.missed_count = 0
        self._begin()

    def _begin(self) -> None:
        self.position = 0
        self.line_count = 0
        self.home = self.path
        self.format_name: str | None = None
        self.memory: dict[str, str] = {}
        self._mark = _mark(b"", b"")
        # Up to here there is no line feed behind the position, while the mark of what stands there
        # holds.
        self._searched = 0
        self._searched_mark = ""

    @classmethod
    def restored(cls, key: bytes, entry: bytes) -> "FollowedFile":
        """Return the file as ``entry`` was made of it.

        Raises:
            ChangelogError: That can't be read.
        """
        try:
            # Not by msgspec, which refuses the lone surrogates of a name that is not UTF-8.
            held = msgspec.convert(json.loads(entry), _Held)
        except (ValueError, RecursionError) as error:
            message = (
                f"the position {key!r} of a followed file can't be read ({error!r}): was it written"
                " by a newer version? Follow under another --name to send everything again"
            )
            raise ChangelogError(message) from error
        file = cls(Found(held.path, Identity(held.device, held.inode), Stamp(0, 0)), key)
        file.position = file._searched = held.position
        file.line_count = held.line_count
        file.home, file.memory = held.home, held.memory
        file.format_name = held.format
        file._mark = held.mark
        return file

    def entry(self) -> bytes:
        """Return all that is needed to go on from here."""
        held = {
            "path": self.path,
            "home": self.home,
            "device": self.identity.device,
            "inode": self.identity.inode,
            "position": self.position,
            "line_count": self.line_count,
            "mark": self._mark,
            "format": self.format_name,
            "memory": self.memory,
        }
        return json.dumps(held, separators=(",", ":")).encode()

    def move(self, found: Found) -> None:
        """Note where the file is now."""
        if self.identity != found.identity:
            self.stamp = None
        self.path, self.identity = found.path, found.identity
        if not self.position:
            self.home = self.path

    def is_at(self, path: str) -> bool:
        """Tell whether the file at ``path`` begins with all that was read.

        Raises:
            OSError: It can't be read.
        """
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return _mark(*self._read_around(descriptor)) == self._mark
        finally:
            os.close(descriptor)

    def read(self, max_bytes: int) -> Lines:
        """Take the next whole lines.

        Args:
            max_bytes: Read so much of the file at most; a longer line comes once its end is found.

        Raises:
            OSError: It can't be read.
        """
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            status = os.fstat(descriptor)
            if Identity.of(status) != self.identity:
                self.stamp = None  # it has another name by now: the next look tells
                return Lines((), self.line_count, has_more=False)
            data = self._read_lines(descriptor, status.st_size, max_bytes)
            head, tail = self._read_around(descriptor)
        finally:
            os.close(descriptor)
        if _mark(head, tail) != self._mark:
            _log.warning(
                "file was cut or replaced; it is read from its start",
                extra={"path": self.path, "size": status.st_size, "position": self.position},
            )
            self._begin()
            return Lines((), 0, has_more=True)
        return self._take(data, head, tail, status.st_size)

    def _read_lines(self, descriptor: int, size: int, max_bytes: int) -> bytes:
        """Return whole lines from the position on, or nothing while no line feed is found."""
        start, head, tail = self._searched_until(descriptor, size)
        block = os.pread(descriptor, max_bytes, start)
        end = block.rfind(b"\n") + 1
        self._searched = start + (end or len(block))
        if not end:
            self._searched_mark = _mark(*_further(head, tail, block))
            return b""
        if start == self.position:
            return block[:end]
        data = os.pread(descriptor, start + end - self.position, self.position)
        return data[: data.rfind(b"\n") + 1]

    def _searched_until(self, descriptor: int, size: int) -> tuple[int, bytes, bytes]:
        """Return to where no line feed needs to be looked for, and what stands before that."""
        searched_bytes = self._searched - self.position
        if searched_bytes <= 0 or self._searched >= size:
            return self.position, b"", b""
        tail_bytes = min(_TAIL_BYTES, searched_bytes)
        head = os.pread(descriptor, min(_HEAD_BYTES, searched_bytes), self.position)
        tail = os.pread(descriptor, tail_bytes, self._searched - tail_bytes)
        # The file's own mark ends at the position: a half line may have been replaced.
        if _mark(head, tail) != self._searched_mark:
            return self.position, b"", b""
        return self._searched, head, tail

    def _take(self, data: bytes, head: bytes, tail: bytes, size: int) -> Lines:
        first_number = self.line_count
        values = data[:-1].split(b"\n") if data else []
        is_stopped = False
        if self.stop_before is not None and first_number + len(values) >= self.stop_before:
            is_stopped = True
            values = values[: max(0, self.stop_before - first_number)]
            data = data[: sum(len(it) + 1 for it in values)]
        if data:
            self.position += len(data)
            self.line_count += len(values)
            self._mark = _mark(*_further(head, tail, data))
        return Lines(values, first_number, has_more=not is_stopped and self._searched < size)

    def _read_around(self, descriptor: int) -> tuple[bytes, bytes]:
        """Return the first bytes of what was read, and the last."""
        tail_bytes = min(_TAIL_BYTES, self.position)
        return (
            os.pread(descriptor, min(_HEAD_BYTES, self.position), 0),
            os.pread(descriptor, tail_bytes, self.position - tail_bytes),
        )


def _mark(head: bytes, tail: bytes) -> str:
    return hashlib.blake2b(head + b"\n" + tail, digest_size=16).hexdigest()


def _further(head: bytes, tail: bytes, data: bytes) -> tuple[bytes, bytes]:
    """Return the first bytes, and the last, of a stretch that ``data`` makes longer."""
    return (head + data[:_HEAD_BYTES])[:_HEAD_BYTES], (tail + data)[-_TAIL_BYTES:]
