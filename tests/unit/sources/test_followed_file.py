"""One file that grows: each line comes once and whole, whatever is cut, torn or written anew."""

import logging
import os

import pytest

from processor.core.errors import ChangelogError
from processor.sources.follow import Follower
from processor.sources.followed_file import FollowedFile
from tests.unit.sources.following import TURN_BYTES, append


def test_lines_come_as_they_are_appended(desk, file):
    file.write_bytes(b"1\n2\n")
    assert desk.follow() == [("a.jsonl", b"1"), ("a.jsonl", b"2")]
    assert desk.follow() == []
    append(file, b"\n\r\n\xff\xe2\x80\xa8\n")
    assert desk.follow() == [("a.jsonl", it) for it in (b"", b"\r", b"\xff\xe2\x80\xa8")]


def test_half_a_line_waits_for_its_line_feed_over_a_restart(desk, file):
    file.write_bytes(b"1\n{half")
    assert desk.follow() == [("a.jsonl", b"1")]
    append(file, b" and more")
    assert desk.follow() == []
    desk.restart()
    assert desk.follow() == []
    append(file, b"}\n3")
    assert desk.follow() == [("a.jsonl", b"{half and more}")]


def test_torn_line_onto_which_the_next_is_glued_is_a_line(desk, file):
    file.write_bytes(b'{"torn')
    assert desk.follow() == []
    append(file, b'{"whole":1}\n')
    assert desk.follow() == [("a.jsonl", b'{"torn{"whole":1}')]


def test_line_longer_than_a_turn_comes_whole(desk, file):
    long = b"x" * (10 * TURN_BYTES + 3)
    file.write_bytes(b"1\n" + long)
    assert desk.follow() == [("a.jsonl", b"1")]
    append(file, long + b"\n3\n")
    assert desk.follow() == [("a.jsonl", long + long), ("a.jsonl", b"3")]


def test_line_whose_room_was_filled_later_comes_whole(desk, file):
    """A writer that reserves room first: no byte is added, and a line feed comes where none was."""
    size = 5 * TURN_BYTES
    file.write_bytes(b"1\n" + bytes(size))
    assert desk.follow() == [("a.jsonl", b"1")]
    with file.open("r+b") as stream:
        stream.seek(2)
        stream.write(b"2\n3\n")
    os.utime(file, ns=(1, 1))
    assert desk.follow() == [("a.jsonl", b"2"), ("a.jsonl", b"3")]


def test_torn_line_that_is_cut_off_and_written_anew_comes_once(desk, file):
    file.write_bytes(b"1\n" + b"torn" * TURN_BYTES)
    assert desk.follow() == [("a.jsonl", b"1")]
    with file.open("r+b") as stream:
        stream.truncate(2)
    assert desk.follow() == []
    append(file, b"2\n" + b"y" * 5 * TURN_BYTES + b"\n")
    assert desk.follow() == [("a.jsonl", b"2"), ("a.jsonl", b"y" * 5 * TURN_BYTES)]


@pytest.mark.parametrize("size", [12, 500, 5000])
def test_half_a_line_that_is_replaced_by_a_line_and_more_is_searched_again(desk, file, size):
    """The line feed lay before what was searched of the line that stood there first."""
    append(file, b"x" * size)
    assert desk.follow() == []
    file.write_bytes(b"ab\n" + b"y" * (size + 10))
    assert desk.follow() == [("a.jsonl", b"ab")]


def test_long_line_that_is_cut_while_it_is_read_does_not_come(desk, file, monkeypatch):
    file.write_bytes(b"1\n" + b"x" * 3 * TURN_BYTES + b"\n")
    real = os.pread

    def cutting(descriptor, count, offset):
        if count > TURN_BYTES:
            os.truncate(file, 100)
        return real(descriptor, count, offset)

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", cutting)
        assert desk.follow() == [("a.jsonl", b"1")]
    append(file, b"y\n")
    assert desk.follow() == [("a.jsonl", b"x" * 98 + b"y")]


def test_what_was_not_committed_comes_again_after_a_crash(desk, file):
    file.write_bytes(b"1\n2\n")
    desk.follow()
    append(file, b"3\n")
    assert desk.take()[0] == [("a.jsonl", b"3")]
    desk.restart()
    assert desk.follow() == [("a.jsonl", b"3")]
    desk.restart()
    assert desk.follow() == []


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("content", [b"", b"x\n", b"1\n2\n", b"other\n" * 100])
def test_file_that_was_cut_or_written_anew_starts_again(desk, file, caplog, content, restarts):
    file.write_bytes(b"1\n2\n3\n")
    desk.follow()
    with file.open("wb") as stream:  # the inode stays
        stream.write(content)
    if restarts:
        desk.restart()
    with caplog.at_level(logging.WARNING):
        assert [line for _, line in desk.follow()] == content.split(b"\n")[:-1]
    assert "cut or replaced" in caplog.text
    append(file, b"more\n")
    assert desk.follow() == [("a.jsonl", b"more")]


def test_file_written_anew_with_the_same_beginning_starts_again(desk, file):
    """Longer than before, its first kilobyte the same: what stands at the position differs."""
    head = b"h" * 2_000 + b"\n"
    file.write_bytes(head + b"1\n2\n3\n")
    desk.follow()
    anew = head + b"4\n5\n6\n7\n"
    file.write_bytes(anew)
    assert [line for _, line in desk.follow()] == anew.split(b"\n")[:-1]


def test_two_writers_lines_come_in_the_order_of_their_bytes(desk, file):
    with file.open("ab", buffering=0) as one, file.open("ab", buffering=0) as two:
        for number in range(20):
            (one, two)[number % 2].write(b"%d\n" % number)
            if number % 3 == 0:
                desk.follow()
    desk.follow()
    assert [line for _, line in desk.committed] == [b"%d" % it for it in range(20)]


def test_line_that_must_not_be_taken_stops_its_file_alone(desk, folder, file):
    file.write_bytes(b"1\n2\n3\n4\n")
    (folder / "b.jsonl").write_bytes(b"1\n")
    desk.stop_before = {str(file): 2}
    for _ in range(2):
        desk.restart()
        desk.follow()
        append(file, b"5\n")
    expected = [("a.jsonl", b"1"), ("b.jsonl", b"1"), ("a.jsonl", b"2")]
    assert sorted(desk.committed) == sorted(expected)
    desk.stop_before = {}
    desk.restart()
    assert [line for _, line in desk.follow()] == [b"3", b"4", b"5", b"5"]


def test_lines_are_numbered_over_restarts(desk, file):
    file.write_bytes(b"1\n2\n")
    desk.follow()
    append(file, b"3\n")
    desk.restart()
    desk.follower.look()
    _, lines = desk.follower.take(TURN_BYTES)
    assert (lines.first_number, list(lines.values)) == (2, [b"3"])


def test_what_a_format_remembers_is_kept(desk, file):
    file.write_bytes(b"1\n")
    desk.follower.look()
    followed, _ = desk.follower.take(TURN_BYTES)
    followed.format_name = "pi"
    followed.memory["session"] = "s\udcff1"
    restored = FollowedFile.restored(followed.key, followed.entry())
    assert (restored.format_name, restored.memory) == ("pi", {"session": "s\udcff1"})
    assert restored.entry() == followed.entry()


def test_name_that_is_not_utf8_is_kept(desk, folder):
    name = os.fsencode(folder) + b"/\xff.jsonl"
    with open(name, "wb") as stream:  # noqa: PTH123
        stream.write(b"1\n")
    assert len(desk.follow()) == 1
    desk.restart()
    assert desk.follow() == []


@pytest.mark.parametrize("entry", [b"", b"{}", b"[]", b'{"path":1}', b"\xff"])
def test_entry_that_can_not_be_read_says_what_to_do(entry):
    with pytest.raises(ChangelogError, match="--name"):
        Follower(["here"], {b"key": entry})
