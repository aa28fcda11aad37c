"""A follower on a real folder, with a memory that outlives it; no broker."""

import os

from processor.sources.follow import Follower

TURN_BYTES = 64


class Desk:
    """What feeds on a follower: it takes lines, and commits them with the entries, or crashes."""

    def __init__(self, folder, *roots):
        self.folder = folder
        self.roots = [str(it) for it in roots or (folder,)]
        self.entries = {}
        self.committed = []
        self.stop_before = {}
        self.restart()

    def restart(self, *roots):
        """Forget all that was not committed, as kill -9 does."""
        self.roots = [str(it) for it in roots] or self.roots
        self.follower = Follower(self.roots, self.entries, self.stop_before)

    def take(self, turns=None):
        """Look, and take some turns, or all; return the lines and what else is to be committed."""
        self.follower.look()
        files, lines = self.follower.take_moved(), []
        while turns is None or turns > 0:
            taken = self.follower.take(TURN_BYTES)
            if taken is None:
                break
            file, found = taken
            files.add(file)
            lines += [(os.path.relpath(file.home, self.folder), it) for it in found.values]
            turns = None if turns is None else turns - 1
        return lines, files

    def commit(self, lines, files):
        self.entries |= {it.key: it.entry() for it in files}
        self.committed += lines

    def follow(self, turns=None):
        """Take and commit; return the lines, each with the name that its file had at first."""
        lines, files = self.take(turns)
        self.commit(lines, files)
        return lines


def append(path, data):
    with path.open("ab") as stream:
        stream.write(data)
