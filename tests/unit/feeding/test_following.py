"""What the follower makes of lines, and of faults: with a ledger in memory, which may crash."""

import asyncio
import contextlib
import logging

import pytest

from processor.core.errors import FencedError, UnreachableError
from processor.feeding import following as module
from processor.feeding.choice import Choice, SessionRule
from processor.feeding.following import Following
from processor.feeding.sending import NotSentError
from processor.formats.format import SessionRecord
from processor.kafka.ledger import OutgoingTooLargeError
from tests.unit.feeding.knowing import know
from tests.unit.sources.following import append

LIMIT = 100
NEVER = 10.0


class VecBook:
    """Keeps messages and entries; a fault in the list of those to come is raised instead."""

    def __init__(self, *faults):
        self.messages = []
        self.entries = {}
        self.faults = list(faults)
        self.lands = False
        self.transactions = []

    async def open(self):
        self._fail("open")
        return dict(self.entries)

    async def commit(self, messages, entries):
        await asyncio.sleep(0)
        for it in messages:
            if len(it.value) > LIMIT:
                raise OutgoingTooLargeError(it)
        if self.lands or not self._is_next("commit"):
            self.messages += messages
            self.entries |= entries
            self.transactions.append(len(messages))
        self._fail("commit")

    async def close(self):
        pass

    def _is_next(self, where):
        return bool(self.faults) and self.faults[0][0] == where

    def _fail(self, where):
        if self._is_next(where):
            raise self.faults.pop(0)[1]

    def lines_of(self, session):
        return [it.value for it in self.messages if it.key == session.encode()]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "_LOOK_EVERY_S", 0.001)
    monkeypatch.setattr(module, "_REOPEN_AFTER_S", 0.001)


def follow(book, folder, choice=None, *, until):
    """Follow a folder until a number of messages was sent, and no longer."""
    following = Following(book, "records", [str(folder)], choice or Choice(SessionRule()))

    async def story():
        running = asyncio.ensure_future(following.run())
        async with asyncio.timeout(NEVER):
            while len(book.messages) < until and not running.done():  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        if running.done():
            await running
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        return following

    return asyncio.run(story())


def test_lines_are_sent_once_over_restarts(tmp_path):
    book = VecBook()
    file = tmp_path / "talk.one.jsonl"
    file.write_bytes(b"1\n2\n")
    assert follow(book, tmp_path, until=2).record_count == 2
    append(file, b"3\n")
    follow(book, tmp_path, until=3)
    assert [(it.topic, it.key, it.value) for it in book.messages] == [
        ("records", b"talk.one", it) for it in (b"1", b"2", b"3")
    ]


@pytest.mark.parametrize("lands", [False, True])
@pytest.mark.parametrize("error", [UnreachableError("no answer"), FencedError("timed out")])
def test_commit_without_an_answer_is_looked_up(tmp_path, lands, error):
    book = VecBook(("commit", error))
    book.lands = lands
    (tmp_path / "a.jsonl").write_bytes(b"1\n2\n")
    (tmp_path / "b.jsonl").write_bytes(b"3\n")
    follow(book, tmp_path, until=3)
    assert sorted(it.value for it in book.messages) == [b"1", b"2", b"3"]


def test_broker_that_goes_away_is_waited_for(tmp_path):
    away = UnreachableError("gone")
    book = VecBook(("commit", away), ("open", away), ("open", away))
    (tmp_path / "a.jsonl").write_bytes(b"1\n")
    follow(book, tmp_path, until=1)
    assert book.faults == []


def test_broker_that_was_never_there_is_told_at_once(tmp_path):
    with pytest.raises(UnreachableError):
        follow(VecBook(("open", UnreachableError("gone"))), tmp_path, until=1)


def test_older_follower_of_a_name_stops(tmp_path):
    fenced = FencedError("another one")
    (tmp_path / "a.jsonl").write_bytes(b"1\n")
    with pytest.raises(FencedError, match="another one"):
        follow(VecBook(("commit", fenced), ("open", fenced)), tmp_path, until=1)


def test_line_too_large_stops_it_after_all_before_it_was_sent(tmp_path):
    book = VecBook()
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"1\n2\n" + b"x" * (LIMIT + 1) + b"\n3\n")
    (tmp_path / "b.jsonl").write_bytes(b"4\n")
    for _ in range(2):
        with pytest.raises(NotSentError, match=r"a\.jsonl:3: .* 102 bytes .* before it"):
            follow(book, tmp_path, until=9)
        assert book.lines_of("a") == [b"1", b"2"]
        assert book.lines_of("b") == [b"4"]
    file.write_bytes(file.read_bytes().replace(b"x" * (LIMIT + 1), b"short"))
    follow(book, tmp_path, until=5)
    assert book.lines_of("a") == [b"1", b"2", b"short", b"3"]


def test_line_without_its_session_is_of_the_file(tmp_path):
    book = VecBook()
    (tmp_path / "a.jsonl").write_bytes(b'{"s":"x"}\nno json\n{"s":"y"}\n')
    follow(book, tmp_path, Choice(SessionRule(None, "s")), until=3)
    assert [it.key for it in book.messages] == [b"x", b"a", b"y"]


class Told:
    """A format whose first line names the session, each line's number in a header."""

    def __init__(self, options, memory):
        self._session, self._memory = options.session, memory

    def read(self, value):
        if value.startswith(b"session "):
            self._memory["session"] = value[8:].decode()
        self._memory["count"] = str(int(self._memory.get("count", "0")) + 1)
        headers = (("count", self._memory["count"].encode()),)
        return [SessionRecord(self._memory.get("session", self._session), value, headers)]


@pytest.fixture
def told(monkeypatch):
    know(monkeypatch, Told, lambda lines: lines[0] == b"session s")


@pytest.mark.usefixtures("told")
def test_format_and_what_it_remembers_outlive_a_restart(tmp_path):
    book = VecBook()
    told_file, other = tmp_path / "told.jsonl", tmp_path / "other.jsonl"
    told_file.write_bytes(b"session s\n1\n")
    other.write_bytes(b"1\n")
    follow(book, tmp_path, until=3)
    append(told_file, b"2\n")
    append(other, b"session s\n")
    follow(book, tmp_path, until=5)
    assert book.lines_of("s") == [b"session s", b"1", b"2"]
    assert book.lines_of("other") == [b"1", b"session s"]
    counts = [dict(it.headers)["count"] for it in book.messages if it.key == b"s"]
    assert counts == [b"1", b"2", b"3"]


def test_renamed_file_keeps_its_session(tmp_path):
    book = VecBook()
    (tmp_path / "a.jsonl").write_bytes(b"1\n")
    follow(book, tmp_path, until=1)
    (tmp_path / "a.jsonl").rename(tmp_path / "b.jsonl")
    append(tmp_path / "b.jsonl", b"2\n")
    follow(book, tmp_path, until=2)
    assert book.lines_of("a") == [b"1", b"2"]


def test_transactions_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_BATCH_RECORDS", 10)
    monkeypatch.setattr(module, "_TURN_BYTES", 8)
    book = VecBook()
    (tmp_path / "a.jsonl").write_bytes(b"1\n" * 100)
    follow(book, tmp_path, until=100)
    assert max(book.transactions) < 10 + 4


def test_cancelled_it_finishes_the_transaction_at_hand(tmp_path):
    book = VecBook()
    (tmp_path / "a.jsonl").write_bytes(b"1\n")
    finishes = asyncio.Event()

    async def commit(messages, entries):
        await finishes.wait()
        book.messages += messages

    book.commit = commit

    async def story():
        following = Following(book, "records", [str(tmp_path)], Choice(SessionRule()))
        running = asyncio.ensure_future(following.run())
        await asyncio.sleep(0.05)
        running.cancel()
        await asyncio.sleep(0.01)
        assert not running.done()
        finishes.set()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(story())
    assert [it.value for it in book.messages] == [b"1"]


def test_cancelled_while_its_transaction_fails_it_ends_all_the_same(tmp_path, caplog):
    book = VecBook(("commit", UnreachableError("gone")))
    (tmp_path / "a.jsonl").write_bytes(b"1\n")

    async def story():
        following = Following(book, "records", [str(tmp_path)], Choice(SessionRule()))
        running = asyncio.ensure_future(following.run())
        commit = book.commit

        async def cancelling(messages, entries):
            running.cancel()
            await commit(messages, entries)

        book.commit = cancelling
        with pytest.raises(asyncio.CancelledError):
            await running

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    assert book.messages == []
