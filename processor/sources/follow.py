"""Files that grow, read line by line, each line once; no broker, and nothing that waits.

Theory of operation. Device and inode tell a file across a rename, but another file may get the
inode; the path tells it across a copy, but another file may get the name. So what was read is known
by a mark too (``followed_file.py``). ``Follower.look`` finds files and what each is:

- the identity of a file that is followed, under its name: that file; read if size or time changed;
- the same under another name: renamed, if the mark holds, and it goes on; if not, the inode was
  given to a new file;
- no known identity, but the name of a file that is not found any more, and the mark holds: replaced
  by itself and more, restored, or on a device that has another number now; it goes on;
- anything else is a new file, from its first byte. Where it has the name of one that goes on under
  another (rotation), it waits until that one is read to its end.

A file whose mark does not hold was cut or replaced in its place: it starts anew, from its first
byte. One that is not found any more is looked for in its folder, under names that are none of a
transcript; in vain, it keeps its position all the same, since it may come back.

The files are read in turn, a bounded part at a time, so that a huge one holds up no other.
"""

import logging
import os
from collections import Counter, defaultdict, deque
from collections.abc import Container, Mapping, Sequence
from typing import Final

from processor.sources.finding import Found, Identity, find_file, find_transcripts
from processor.sources.followed_file import FollowedFile, Lines

#: A listing may miss what is renamed while it is made: so often a file is looked for elsewhere.
_LOOKED_FOR: Final = 5
#: Of a file whose inode was given to another.
_NOWHERE: Final = Identity(-1, -1)
_log = logging.getLogger(__name__)


class Follower:
    """All files below some folders, and some by name, as they grow.

    Args:
        roots: Folders, whose ``*.jsonl`` are followed, and files, which need not be there yet.
        entries: What ``FollowedFile.entry`` gave, by key, of those that were followed before.
        stop_before: Path, and number of the line that must not be taken.
    """

    def __init__(
        self,
        roots: Sequence[str],
        entries: Mapping[bytes, bytes],
        stop_before: Mapping[str, int] | None = None,
    ) -> None:
        # An entry outlives the working directory.
        self._roots = [os.path.abspath(it) for it in roots]  # noqa: PTH100
        # Renamed to what would not be followed by itself.
        self._strays: dict[Identity, str] = {}
        self._stop_before = stop_before or {}
        self._files = [FollowedFile.restored(*it) for it in entries.items()]
        self._by_identity: defaultdict[Identity, list[FollowedFile]] = defaultdict(list)
        for file in self._files:
            self._by_identity[file.identity].append(file)
        self._queue: deque[FollowedFile] = deque()
        self._queued: set[FollowedFile] = set()
        self._moved: set[FollowedFile] = set()
        self._troubles: dict[str, str] = {}
        self._names: Counter[str] = Counter()

    def look(self) -> int:
        """Look which files are there and which have changed, and return how many there are."""
        found = self._find().values()
        self._names = Counter(file.path for file in self._files)
        known = {it: file for it in found if (file := self._known(it)) is not None}
        newcomers = [it for it in found if it not in known]
        # Before any name changes: a new file may have the name that another one had.
        known |= self._newcomers(newcomers, set(known.values()))
        for it in found:
            self._see(known[it], it)
        return len(found)

    def take(self, max_bytes: int) -> tuple[FollowedFile, Lines] | None:
        """Return the next lines of the file whose turn it is; ``None`` when there are no more."""
        while self._queue:
            file = self._queue.popleft()
            if not self._queued.isdisjoint(file.waits_for):
                self._queue.append(file)
                continue
            lines = self._read(file, max_bytes)
            if lines.has_more:
                self._queue.append(file)
            else:
                self._queued.discard(file)
            if lines.values:
                return file, lines
        return None

    def take_moved(self) -> set[FollowedFile]:
        """Return the files, once, whose entries changed without a line that was read."""
        moved, self._moved = self._moved, set()
        return moved

    def _find(self) -> dict[Identity, Found]:
        found: dict[Identity, Found] = {}
        for root in self._roots:
            for it in self._at(root):
                found.setdefault(it.identity, it)
        for identity, path in self._strays.items():
            if (stray := _still_there(path, identity)) is not None:
                found.setdefault(identity, stray)
        missing = [it for it in self._files if it.identity not in found]
        wanted = [it for it in missing if it.missed_count < _LOOKED_FOR and self._is_ours(it)]
        for folder in {os.path.dirname(it.path) for it in wanted}:  # noqa: PTH120
            found |= self._strays_in(folder, {it.identity: it for it in wanted})
        for file in missing:
            file.missed_count += 1
        return found

    def _at(self, root: str) -> Sequence[Found]:
        try:
            it = find_file(root)
        except OSError as error:
            self._trouble(error)
            return ()
        return find_transcripts(root, self._trouble) if it is None else (it,)

    def _is_ours(self, file: FollowedFile) -> bool:
        """Tell whether a file was first found under one of the roots."""
        home = file.home
        return any(home == it or home.startswith(it.rstrip(os.sep) + os.sep) for it in self._roots)

    def _strays_in(
        self, folder: str, wanted: Mapping[Identity, FollowedFile]
    ) -> dict[Identity, Found]:
        """Return those files of a folder, whatever their names, that are wanted."""
        inodes = {it.inode for it in wanted}
        found = {}
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.inode() not in inodes or not entry.is_file(follow_symlinks=False):
                        continue
                    it = find_file(entry.path)
                    file = None if it is None else wanted.get(it.identity)
                    if it is not None and file is not None and file.is_at(it.path):
                        found[it.identity] = it
                        self._strays[it.identity] = it.path
        except OSError:  # gone as well, or just now
            return found
        return found

    def _known(self, it: Found) -> FollowedFile | None:
        """Return the file that ``it`` is, if its identity tells."""
        former = self._by_identity.get(it.identity, ())
        # One that got another inode gave this one back: whoever has it now is another file.
        held = [file for file in former if file.identity == it.identity]
        if len(held) == 1 and held[0].path == it.path and self._is_alone(held[0]):
            return held[0]  # cut at most, or replaced: reading tells
        # Of what nothing was read, anything would be the same.
        same = next((file for file in held if file.position and self._holds(file, it)), None)
        # Where others had its name since, one that was read and does not hold is long gone.
        named = (file for file in held if file.path == it.path)
        return same or next((it for it in named if not it.position or self._is_alone(it)), None)

    def _is_alone(self, file: FollowedFile) -> bool:
        return self._names[file.path] == 1

    def _newcomers(
        self, newcomers: Sequence[Found], alive: Container[FollowedFile]
    ) -> dict[Found, FollowedFile]:
        """Return the files that those are whose identities tell nothing."""
        names = {it.path for it in newcomers}
        former = [file for file in self._files if not names.isdisjoint((file.path, file.home))]
        files = {}
        for it in newcomers:
            had_its_name = [file for file in former if it.path in (file.path, file.home)]
            gone = (each for each in had_its_name if each.path == it.path and each not in alive)
            file = next((each for each in gone if self._holds(each, it)), None)
            if file is None:
                file = FollowedFile(it)
                file.waits_for = tuple(each for each in had_its_name if each in alive)
                self._files.append(file)
            files[it] = file
        return files

    def _holds(self, file: FollowedFile, it: Found) -> bool:
        try:
            return file.is_at(it.path)
        except OSError as error:
            self._trouble(error)
            return file.path == it.path

    def _see(self, file: FollowedFile, it: Found) -> None:
        """Note under which name and identity a file is, and that it is to be read if it changed."""
        for other in self._by_identity[it.identity]:
            if other is not file and other.identity == it.identity:
                other.identity = _NOWHERE  # the inode is another's now
        self._by_identity[it.identity] = [file]
        if file.position and (file.path, file.identity) != (it.path, it.identity):
            _log.info("file was renamed or replaced", extra={"path": it.path, "was": file.path})
            self._moved.add(file)
        file.move(it)
        file.missed_count = 0
        file.stop_before = self._stop_before.get(it.path)
        if file.stamp != it.stamp:
            file.stamp = it.stamp
            if file not in self._queued:
                self._queued.add(file)
                self._queue.append(file)

    def _read(self, file: FollowedFile, max_bytes: int) -> Lines:
        try:
            lines = file.read(max_bytes)
        except OSError as error:
            file.stamp = None  # to be tried again
            self._trouble(error)
            return Lines((), file.line_count, has_more=False)
        if self._troubles.pop(file.path, None):
            _log.info("file can be read again", extra={"path": file.path})
        return lines

    def _trouble(self, error: OSError) -> None:
        """Say once what can't be read."""
        path, why = str(error.filename), error.strerror or repr(error)
        if self._troubles.get(path) != why:
            self._troubles[path] = why
            _log.warning("can't be read; tried again", extra={"path": path, "why": why})


def _still_there(path: str, identity: Identity) -> Found | None:
    try:
        it = find_file(path)
    except OSError:  # renamed again, or deleted
        return None
    return it if it is not None and it.identity == identity else None
