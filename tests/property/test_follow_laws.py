"""Whatever happens to files, and however often the follower dies: each line once, in order."""

import os
import shutil
import tempfile
from collections import defaultdict
from itertools import count
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from tests.unit.sources.following import Desk, append


class Written:
    """What was written under one name since the file was made or cut; every line names it.

    Attributes:
        is_known: Its lines were committed since it got its inode: it may have any name.
        seen_path: The name that it had then: under that it may get another inode.
    """

    def __init__(self, number, path):
        self.number, self.path = number, path
        self.data = b""
        self.is_known = False
        self.seen_path = path

    def lines(self):
        return self.data.split(b"\n")[:-1]


class Files(RuleBasedStateMachine):
    """Files that grow, move, are cut and replaced, under a follower that looks when it likes."""

    written = Bundle("written")

    def __init__(self):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.desk = Desk(self.folder)
        self.numbers = count(1)
        self.streams = []
        self.live = []

    def teardown(self):
        self.settle()
        self.lines_came_once_and_in_order(whole=True)
        shutil.rmtree(self.folder)

    def settle(self):
        self.desk.follow()
        for it in self.live:
            it.is_known = len(it.lines()) > 0
            it.seen_path = it.path

    def begin(self, path):
        it = Written(next(self.numbers), path)
        self.streams.append(it)
        self.live.append(it)
        return it

    def grow(self, it, shape):
        """Append lines, the last of them perhaps without its line feed."""
        data = b""
        for size, is_ended in shape:
            data += b"<%d:%d>" % (it.number, len(it.data + data)) + b"." * size
            data += b"\n" * is_ended
        append(it.path, data)
        it.data += data

    shapes = st.lists(st.tuples(st.sampled_from([0, 3, 70, 300, 1_500]), st.booleans()), max_size=4)

    @rule(target=written, shape=shapes, sub=st.booleans())
    def make(self, shape, sub):
        folder = self.folder / "sub" if sub else self.folder
        folder.mkdir(exist_ok=True)
        it = self.begin(folder / f"{next(self.numbers)}.jsonl")
        self.grow(it, shape)
        return it

    @rule(it=written, shape=shapes)
    def grows(self, it, shape):
        if it in self.live:
            self.grow(it, shape)

    @rule(it=written, is_transcript=st.booleans())
    def is_renamed(self, it, is_transcript):
        if it in self.live and it.is_known:
            name = f"{next(self.numbers)}" + (".jsonl" if is_transcript else ".old")
            it.path = it.path.rename(it.path.parent / name)

    @rule(target=written, it=written, shape=shapes, is_transcript=st.booleans())
    def is_rotated(self, it, shape, is_transcript):
        if it not in self.live or not it.is_known or it.path.suffix != ".jsonl":
            return it
        path = it.path
        self.is_renamed(it, is_transcript)
        new = self.begin(path)
        self.grow(new, shape)
        return new

    @rule(target=written, it=written, shape=shapes)
    def is_cut(self, it, shape):
        if it not in self.live or it.path.suffix != ".jsonl":
            return it
        self.settle()  # what was not read is gone with it
        self.live.remove(it)
        os.truncate(it.path, 0)
        new = self.begin(it.path)
        self.grow(new, shape)
        return new

    @rule(it=written, shape=shapes)
    def is_replaced_by_itself_and_more(self, it, shape):
        if it in self.live and it.path.suffix == ".jsonl" and it.path == it.seen_path:
            copy = it.path.with_suffix(".new")
            shutil.copy(it.path, copy)
            copy.replace(it.path)
            it.is_known = False
            self.grow(it, shape)

    @rule(it=written)
    def is_deleted(self, it):
        if it in self.live:
            self.settle()
            self.live.remove(it)
            it.path.unlink()

    @rule(turns=st.integers(0, 5))
    def follows(self, turns):
        self.desk.follow(turns)

    @rule()
    def catches_up(self):
        self.settle()

    @rule(turns=st.integers(0, 5))
    def dies(self, turns):
        self.desk.take(turns)
        self.desk.restart()

    @invariant()
    def lines_came_once_and_in_order(self, *, whole=False):
        came = defaultdict(list)
        for _, line in self.desk.committed:
            came[int(line[1 : line.index(b":")])].append(line)
        for it in self.streams:
            lines = came.pop(it.number, [])
            assert lines == (it.lines() if whole else it.lines()[: len(lines)])
        assert not came


TestFiles = Files.TestCase
