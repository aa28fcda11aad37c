"""Which file is which: every way in which a file is renamed, rotated, replaced or lost sight of."""

import json
import logging
import os

import pytest

from tests.unit.sources.following import TURN_BYTES, Desk, append


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
