"""Which files there are."""

import os

from processor.sources.finding import find_file


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


def test_nothing_but_files_is_found(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert find_file(str(tmp_path / "pipe")) is None
