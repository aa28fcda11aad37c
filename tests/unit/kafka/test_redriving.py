"""Letters sent again: which, as what, and each once whatever ends a run; no broker."""

import asyncio

import pytest

from processor.core.errors import ConfigError, NoSessionError, UnreachableError
from processor.kafka import redriving
from processor.kafka.ledger import OutgoingTooLargeError
from processor.kafka.redriving import Plan, Redriver
from processor.protocol.letters import MAX_REPLAYS, Choice, Letter
from processor.protocol.redriven import decode_redriven
from tests.history import Message


class VecLedger:
    """A records topic and the ledger beside it; the commit numbered ``dies_at`` fails."""

    def __init__(self):
        self.records, self.entries = [], {}
        self.dies_at, self.is_written, self.commit_count = None, False, 0

    async def commit(self, messages, entries):
        self.commit_count += 1
        is_dying = self.commit_count == self.dies_at
        if not is_dying or self.is_written:
            self.records += messages
            self.entries |= entries
            self.entries = {key: it for key, it in self.entries.items() if it is not None}
        if is_dying:
            message = "no answer"
            raise UnreachableError(message)


def letter(offset, *, partition=0, value=b"v", headers=(), timestamp=1):
    return Letter("dead", partition, Message(offset, None, value, timestamp, list(headers)))


def run(ledger, letters, *, choice=Choice(), session_of=lambda _: "s1", **plan):  # noqa: B008 - frozen
    redriven = {int(key): decode_redriven(entry, "") for key, entry in ledger.entries.items()}
    it = Redriver("records", Plan(choice, session_of, **plan), ledger.commit, redriven)

    async def play():
        for each in letters:
            if not it.is_full:
                await it.take(each)
        await it.flush()

    asyncio.run(play())
    return it.summary


LETTERS = [
    letter(offset, partition=part, value=b"%d-%d" % (part, offset), timestamp=offset)
    for part in (0, 1)
    for offset in range(0, 20, 2)
]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(redriving, "_BATCH_LETTERS", 3)


def values(ledger):
    return [it.value for it in ledger.records]


def test_letters_become_records_of_their_session_in_order_and_only_once():
    ledger = VecLedger()
    summary = run(ledger, LETTERS, session_of=lambda it: f"s{it.partition}")
    assert values(ledger) == [it.record.value for it in LETTERS]
    assert {(it.topic, it.key, it.partition, it.timestamp_ms) for it in ledger.records} == {
        ("records", b"s0", None, None),
        ("records", b"s1", None, None),
    }
    assert (summary.sent_count, summary.sessions, summary.before_count) == (20, {"s0", "s1"}, 0)
    again = run(ledger, LETTERS)
    assert (again.sent_count, again.before_count, len(ledger.records)) == (0, 20, 20)


def test_entry_stays_small_however_many_markers_lie_between_the_letters():
    ledger = VecLedger()
    run(ledger, LETTERS)
    assert b'"ranges":[[0,19]]' in ledger.entries[b"1"]


@pytest.mark.parametrize("is_written", [False, True])
@pytest.mark.parametrize("dies_at", range(1, 8))
def test_run_that_dies_at_any_commit_is_ended_by_the_next_one(dies_at, is_written):
    """Whether the commit landed that got no answer, the ledger knows."""
    ledger = VecLedger()
    ledger.dies_at, ledger.is_written = dies_at, is_written
    with pytest.raises(UnreachableError):
        run(ledger, LETTERS)
    run(ledger, LETTERS)
    assert values(ledger) == [it.record.value for it in LETTERS]


def test_letters_that_were_passed_over_stay_for_a_later_run():
    ledger = VecLedger()
    assert run(ledger, LETTERS, choice=Choice(since_ms=10)).sent_count == 10
    assert run(ledger, LETTERS, choice=Choice(most=4)).sent_count == 4
    assert run(ledger, LETTERS).sent_count == 6
    assert sorted(values(ledger)) == sorted(it.record.value for it in LETTERS)


def test_letter_that_came_back_too_often_is_left_and_told():
    worn = letter(1, headers=[("processor-replay-count", b"%d" % MAX_REPLAYS)])
    last = letter(2, headers=[("processor-replay-count", b"%d" % (MAX_REPLAYS - 1))])
    ledger = VecLedger()
    summary = run(ledger, [worn, last])
    assert (summary.sent_count, summary.left_count) == (1, 1)
    assert summary.left_because == "dead[0]@1: was sent again 5 times already"
    assert ledger.records[0].headers[-1] == ("processor-replay-count", b"5")


def test_letter_without_a_session_is_left_and_can_go_later():
    def session_of(it):
        if it.record.offset % 4:
            message = f"{it}: no session"
            raise NoSessionError(message)
        return "s1"

    ledger = VecLedger()
    summary = run(ledger, LETTERS, session_of=session_of)
    assert (summary.sent_count, summary.left_count) == (10, 10)
    assert summary.left_because == "dead[0]@2: no session"
    assert run(ledger, LETTERS).sent_count == 10


def test_end_of_a_session_stays_an_end_and_a_partition_can_be_chosen():
    ledger = VecLedger()
    run(ledger, [letter(1, value=None)], partition_of=len)
    assert (ledger.records[0].value, ledger.records[0].partition) == (None, 2)


def test_many_bytes_are_not_kept_for_one_commit(monkeypatch):
    monkeypatch.setattr(redriving, "_BATCH_BYTES", 1_000)
    ledger = VecLedger()
    run(ledger, [letter(offset, value=b"x" * 600) for offset in range(4)])
    assert ledger.commit_count == 2


def test_nothing_to_send_commits_nothing():
    ledger = VecLedger()
    run(ledger, LETTERS, choice=Choice(reason="other"))
    assert ledger.commit_count == 0


def test_entries_of_a_topic_that_was_deleted_go_with_the_first_commit():
    ledger = VecLedger()
    ledger.entries = {b"7": b"old", b"0": b"old"}
    plan = Plan(Choice(), lambda _: "s1")
    it = Redriver("records", plan, ledger.commit, {}, dict.fromkeys(ledger.entries))

    async def play():
        await it.take(letter(1))
        await it.flush()

    asyncio.run(play())
    assert list(ledger.entries) == [b"0"]
    assert letter(1) in decode_redriven(ledger.entries[b"0"], "")


def test_letter_that_the_records_topic_refuses_is_named_with_the_remedy():
    async def refuse(messages, _):
        raise OutgoingTooLargeError(messages[1])

    it = Redriver("records", Plan(Choice(), lambda _: "s1"), refuse, {})

    async def play():
        await it.take(letter(1))
        await it.take(letter(2))
        await it.flush()

    with pytest.raises(ConfigError, match=r"dead\[0\]@2: .* raise the topic's max.message.bytes"):
        asyncio.run(play())
