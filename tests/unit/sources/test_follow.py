"""Every way in which a file grows, moves, is cut or replaced: each line comes once, in order."""

import json
import logging
import os

import pytest

from processor.core.errors import ChangelogError
from processor.sources.finding import find_file
from processor.sources.follow import Follower
from processor.sources.followed_file import FollowedFile
from tests.unit.sources.following import TURN_BYTES, Desk, append


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "talks"


@pytest.fixture
def desk(folder):
    folder.mkdir()
    return Desk(folder)


@pytest.fixture
def file(folder):
    return folder / "a.jsonl"


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


def test_renamed_file_goes_on_under_its_first_name(desk, file, folder):
    file.write_bytes(b"1\n")
    desk.follow()
    file.rename(folder / "b.jsonl")
    append(folder / "b.jsonl", b"2\n")
    assert desk.follow() == [("a.jsonl", b"2")]
    (folder / "b.jsonl").rename(folder / "c.jsonl")
    append(folder / "c.jsonl", b"3\n")
    desk.restart()
    assert desk.follow() == [("a.jsonl", b"3")]


@pytest.mark.parametrize("rotated", ["a.1.jsonl", "a.jsonl.1"])
@pytest.mark.parametrize("restarts", [False, True])
def test_rotated_file_is_finished_before_the_new_one_of_its_name(
    desk, file, folder, rotated, restarts
):
    file.write_bytes(b"1\n")
    desk.follow()
    append(file, b"old\n" * TURN_BYTES + b"torn")
    file.rename(folder / rotated)
    file.write_bytes(b"new\n" * TURN_BYTES)
    if restarts:
        desk.restart()
    expected = [("a.jsonl", it) for it in [b"old"] * TURN_BYTES + [b"new"] * TURN_BYTES]
    assert desk.follow() == expected
    append(folder / rotated, b" no more\n")
    assert desk.follow() == [("a.jsonl", b"torn no more")]


def test_rotated_file_comes_first_also_after_a_restart_half_way(desk, file, folder):
    file.write_bytes(b"1\n")
    desk.follow()
    append(file, b"old\n" * TURN_BYTES)
    file.rename(folder / "a.1.jsonl")
    file.write_bytes(b"new\n" * TURN_BYTES)
    desk.follow(turns=1)
    desk.restart()
    desk.follow()
    assert [it for _, it in desk.committed[1:]] == [b"old"] * TURN_BYTES + [b"new"] * TURN_BYTES


def test_file_rotated_again_and_again_is_still_known(desk, file, folder):
    file.write_bytes(b"1\n")
    desk.follow()
    for number in range(1, 4):
        append(file, b"last of %d\n" % number)
        for other in range(number, 1, -1):
            (folder / f"a.jsonl.{other - 1}").rename(folder / f"a.jsonl.{other}")
        file.rename(folder / "a.jsonl.1")
        file.write_bytes(b"first of %d\n" % (number + 1))
        expected = [b"last of %d" % number, b"first of %d" % (number + 1)]
        assert [line for _, line in desk.follow()] == expected
    append(folder / "a.jsonl.3", b"late\n")
    assert desk.follow() == [("a.jsonl", b"late")]


def test_file_rotated_to_another_name_is_finished_after_a_restart_without_a_look(
    desk, file, folder
):
    file.write_bytes(b"1\n")
    desk.follow()
    append(file, b"2\n" * 3 * TURN_BYTES)
    file.rename(folder / "a.jsonl.1")
    some = desk.follow(turns=1)
    desk.restart()
    rest = desk.follow()
    assert some
    assert some + rest == [("a.jsonl", b"2")] * 3 * TURN_BYTES


def test_unrelated_file_that_takes_the_place_of_a_rotated_one_is_not_followed(desk, file, folder):
    file.write_bytes(b"1\n")
    desk.follow()
    file.rename(folder / "old")
    desk.follow()
    (folder / "old").rename(folder / "older")
    (folder / "old").write_bytes(b"unrelated\n")
    append(folder / "older", b"2\n")
    assert desk.follow() == [("a.jsonl", b"2")]


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


def test_copied_and_cut_file_goes_on_with_what_comes_after(desk, file, folder):
    file.write_bytes(b"1\n")
    desk.follow()
    (folder / "a.jsonl.1").write_bytes(file.read_bytes())
    os.truncate(file, 0)
    append(file, b"2\n")
    assert desk.follow() == [("a.jsonl", b"2")]


def test_file_replaced_by_itself_and_more_goes_on(desk, file, folder):
    """As an editor saves, and a backup is restored: another inode under the name."""
    file.write_bytes(b"1\n2\n")
    desk.follow()
    (folder / "new").write_bytes(b"1\n2\n3\n")
    (folder / "new").replace(file)
    assert desk.follow() == [("a.jsonl", b"3")]
    file.rename(folder / "b.jsonl")
    desk.restart()
    append(folder / "b.jsonl", b"4\n")
    assert desk.follow() == [("a.jsonl", b"4")]


def test_replacement_of_the_same_size_and_time_is_read(desk, file, folder):
    file.write_bytes(b"half")
    os.utime(file, ns=(1, 1))
    assert desk.follow() == []
    (folder / "new").write_bytes(b"new\n")
    os.utime(folder / "new", ns=(1, 1))
    (folder / "new").replace(file)
    assert desk.follow() == [("a.jsonl", b"new")]


def test_new_inode_is_remembered_although_no_line_came(desk, file, folder):
    file.write_bytes(b"1\n2\n")
    desk.follow()
    (folder / "new").write_bytes(b"1\n2\n")
    (folder / "new").replace(file)
    desk.follow()
    desk.restart()
    file.rename(folder / "b.jsonl")
    assert desk.follow() == []


def test_inode_given_away_while_the_name_got_another_is_told_apart(desk, file, folder):
    """Replaced by itself and more, and the old inode went to a new file, all between two looks."""
    file.write_bytes(b"1\n")
    desk.follow()
    append(file, b"2\n")
    (folder / "b.jsonl").write_bytes(b"other\n")
    [(key, entry)] = desk.entries.items()
    held = json.loads(entry) | {"inode": (folder / "b.jsonl").stat().st_ino}
    desk.entries[key] = json.dumps(held).encode()
    desk.restart()
    assert desk.follow() == [("a.jsonl", b"2"), ("b.jsonl", b"other")]


def test_inode_of_before_comes_back_under_the_same_name(desk, file, folder):
    """Symptom: a line came twice. Cut, replaced by itself and more, and again: the first inode."""
    append(file, b"1\n")
    assert desk.follow() == [("a.jsonl", b"1")]
    before = file.rename(folder.parent / "before")
    file.write_bytes(b"2\n")
    assert desk.follow() == [("a.jsonl", b"2")]
    before.write_bytes(b"2\n")
    before.replace(file)
    assert desk.follow() == []
    append(file, b"3\n")
    assert desk.follow() == [("a.jsonl", b"3")]


def test_inode_of_before_a_replacement_is_no_name_of_the_file(desk, file, folder):
    """Symptom: a line came twice. Replaced by itself and rotated; the next got the first inode."""
    append(file, b"1\n")
    assert desk.follow() == [("a.jsonl", b"1")]
    before = file.rename(folder.parent / "before")
    file.write_bytes(b"1\n2\n")
    assert desk.follow() == [("a.jsonl", b"2")]
    file.rename(folder / "b.jsonl")
    before.write_bytes(b"3\n")
    before.rename(file)
    assert sorted(desk.follow()) == [("a.jsonl", b"3")]
    append(folder / "b.jsonl", b"4\n")
    assert [line for _, line in desk.follow()] == [b"4"]


def test_inode_given_to_another_file_does_not_make_it_the_same(desk, folder):
    names = [folder / f"{it}.jsonl" for it in "ab"]
    inodes = set()
    for number in range(20):  # a file system gives out the inode just freed, or soon
        for name in names:
            name.write_bytes(b"%s %d\n" % (name.stem.encode(), number))
            inodes.add(name.stat().st_ino)
            assert desk.follow() == [(name.name, name.read_bytes()[:-1])]
            name.unlink()
        desk.restart()


def test_deleted_file_that_comes_back_goes_on(desk, file, folder):
    file.write_bytes(b"1\n2\n")
    desk.follow()
    file.unlink()
    for _ in range(10):
        assert desk.follow() == []
    file.write_bytes(b"1\n2\n3\n")
    assert desk.follow() == [("a.jsonl", b"3")]


def test_two_writers_lines_come_in_the_order_of_their_bytes(desk, file):
    with file.open("ab", buffering=0) as one, file.open("ab", buffering=0) as two:
        for number in range(20):
            (one, two)[number % 2].write(b"%d\n" % number)
            if number % 3 == 0:
                desk.follow()
    desk.follow()
    assert [line for _, line in desk.committed] == [b"%d" % it for it in range(20)]


def test_linked_file_comes_once_under_its_own_name(desk, folder, tmp_path):
    (folder / "run.jsonl").write_bytes(b"1\n")
    (folder / "latest.jsonl").symlink_to("run.jsonl")
    (tmp_path / "elsewhere.jsonl").write_bytes(b"2\n")
    (folder / "linked.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    (folder / "circle").symlink_to(folder)
    (folder / "broken.jsonl").symlink_to("nowhere")
    assert desk.follow() == [("linked.jsonl", b"2"), ("run.jsonl", b"1")]


def test_new_files_and_folders_are_found(desk, folder):
    (folder / "b.jsonl").write_bytes(b"1\n")
    assert desk.follow() == [("b.jsonl", b"1")]
    (folder / "sub" / "sub").mkdir(parents=True)
    (folder / "sub" / "sub" / "c.jsonl").write_bytes(b"2\n")
    (folder / "sub" / "no.txt").write_bytes(b"none\n")
    assert desk.follow() == [("sub/sub/c.jsonl", b"2")]


def test_file_by_name_need_not_be_there_and_needs_no_extension(tmp_path, caplog):
    desk = Desk(tmp_path, tmp_path / "talk.log")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert desk.follow() == []
    assert caplog.text.count("can't be read") == 1
    (tmp_path / "talk.log").write_bytes(b"1\n")
    (tmp_path / "other.jsonl").write_bytes(b"none\n")
    assert desk.follow() == [("talk.log", b"1")]
    (tmp_path / "talk.log").rename(tmp_path / "talk.log.1")
    append(tmp_path / "talk.log.1", b"2\n")
    assert desk.follow() == [("talk.log", b"2")]


def test_only_what_is_asked_for_now_is_followed(desk, folder):
    (folder / "one").mkdir()
    (folder / "two").mkdir()
    for name in ("one", "two"):
        (folder / name / "a.jsonl").write_bytes(b"1\n")
    desk.follow()
    desk.restart(folder / "one")
    for name in ("one", "two"):
        append(folder / name / "a.jsonl", b"2\n")
    assert desk.follow() == [("one/a.jsonl", b"2")]
    desk.restart(folder)
    assert desk.follow() == [("two/a.jsonl", b"2")]


def test_file_that_can_not_be_read_is_told_once_and_tried_again(desk, file, caplog, monkeypatch):
    file.write_bytes(b"1\n")
    with caplog.at_level(logging.INFO):
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", _refuse)
            for _ in range(3):
                assert desk.follow() == []
        assert caplog.text.count("can't be read") == 1
        assert desk.follow() == [("a.jsonl", b"1")]
    assert "can be read again" in caplog.text


def _refuse(path, *_):
    raise PermissionError(13, "Permission denied", path)


def test_file_renamed_between_look_and_read_is_not_read_as_the_new_one(desk, file, folder):
    file.write_bytes(b"old\n")
    os.utime(file, ns=(1, 1))
    desk.follower.look()
    file.rename(folder / "b.jsonl")
    file.write_bytes(b"new\n")
    os.utime(file, ns=(1, 1))
    assert desk.follower.take(TURN_BYTES) is None
    assert sorted(desk.follow()) == [("a.jsonl", b"new"), ("b.jsonl", b"old")]


def test_huge_file_holds_up_no_other(desk, folder):
    (folder / "a.jsonl").write_bytes(b"huge\n" * 1_000)
    (folder / "b.jsonl").write_bytes(b"small\n")
    assert ("b.jsonl", b"small") in desk.follow(turns=2)


def test_only_files_that_changed_are_opened(desk, folder, monkeypatch):
    for number in range(50):
        (folder / f"{number}.jsonl").write_bytes(b"1\n")
    desk.follow()
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *how: opened.append(path) or real(path, *how))
    append(folder / "7.jsonl", b"2\n")
    desk.follow()
    assert opened == [str(folder / "7.jsonl")]


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


def test_nothing_but_files_is_found(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert find_file(str(tmp_path / "pipe")) is None
