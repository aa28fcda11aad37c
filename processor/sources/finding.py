"""Finding transcripts: every ``*.jsonl`` below a folder, each file once."""

import os
import stat
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Self

SUFFIX: Final = ".jsonl"
OnError = Callable[[OSError], None]


class Identity(NamedTuple):
    """Which file it is, whatever its name; another one may get it once the file is gone."""

    device: int
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """Return it from what the system says about a file."""
        return cls(status.st_dev, status.st_ino)


class Stamp(NamedTuple):
    """What differs once a file has changed."""

    size: int
    modified_ns: int


class Found(NamedTuple):
    """A file as it was seen."""

    path: str
    identity: Identity
    stamp: Stamp


def find_file(path: str) -> Found | None:
    """Return the regular file at ``path``, or at the end of a link; ``None`` for anything else.

    Raises:
        OSError: It is not there, or can't be looked at.
    """
    status = os.stat(path)  # noqa: PTH116 - one of thousands: no object for each
    if not stat.S_ISREG(status.st_mode):
        return None
    return Found(path, Identity.of(status), Stamp(status.st_size, status.st_mtime_ns))


def find_transcripts(folder: str, on_error: OnError) -> list[Found]:
    """Return the transcripts below a folder, in the order of their paths.

    Links are followed, but each file comes once, under a name of its own rather than a link's; a
    circle of links ends.

    Args:
        folder: Where to look.
        on_error: Told what can't be looked at; it is left out.
    """
    found: dict[Identity, Found] = {}
    links = []
    for path in _paths(folder, on_error):
        if os.path.islink(path):  # noqa: PTH114
            links.append(path)
        else:
            _add(found, path, on_error)
    for path in links:
        _add(found, path, on_error)
    return sorted(found.values())


def _add(found: dict[Identity, Found], path: str, on_error: OnError) -> None:
    try:
        file = find_file(path)
    except OSError as error:
        on_error(error)
        return
    if file is not None:
        found.setdefault(file.identity, file)


def _paths(folder: str, on_error: OnError) -> Iterator[str]:
    seen: set[Identity] = set()
    for place, folders, names in os.walk(folder, onerror=on_error, followlinks=True):
        identity = _identity(place)
        if identity is None or identity in seen:
            folders.clear()
            continue
        seen.add(identity)
        folders.sort()
        yield from (os.path.join(place, it) for it in sorted(names) if it.endswith(SUFFIX))  # noqa: PTH118


def _identity(folder: str) -> Identity | None:
    try:
        return Identity.of(os.stat(folder))  # noqa: PTH116
    except FileNotFoundError:  # gone since it was listed
        return None
