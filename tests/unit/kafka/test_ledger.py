"""What a ledger makes of its messages, and what it does when a commit fails; no broker."""

import asyncio

import pytest
from aiokafka import TopicPartition
from aiokafka.partitioner import DefaultPartitioner

from processor.core.errors import ConfigError, FencedError, UnreachableError
from processor.kafka import ledger as module
from processor.kafka.ledger import Ledger, Outgoing, OutgoingTooLargeError
from processor.kafka.producing import RefusedError
from processor.kafka.topic_checks import TopicFacts
from processor.protocol.port import Message
from processor.settings import Settings

COUNT = 5
ENTRIES_AT = TopicPartition("processor-positions", 0)
LIMIT = 1_000_000


class World:
    """A broker's side of ledgers: topics, and what producers committed or refuse to."""

    def __init__(self):
        self.entries = {}
        self.committed = []
        self.open_producers = []
        self.failure = None

    def producer(self, _client, transactional_id, *_, max_batch_bytes):
        return VecProducer(self, transactional_id, max_batch_bytes)


class VecProducer:
    """Keeps what it is given in one world; a newer one of the same id fences it."""

    def __init__(self, world, transactional_id, max_batch_bytes):
        self.world, self.transactional_id = world, transactional_id
        self.max_batch_bytes = max_batch_bytes

    async def start(self, _):
        self.world.open_producers = [self]

    async def commit(self, sendings, offsets):
        if self not in self.world.open_producers:
            message = "fenced"
            raise FencedError(message)
        if isinstance(self.world.failure, Exception):
            raise self.world.failure
        self.world.committed.append((sendings, offsets))
        for target, messages in sendings:
            if target == ENTRIES_AT:
                self.world.entries |= {key: value for key, value, *_ in messages}

    async def discard(self):
        if self in self.world.open_producers:
            self.world.open_producers.remove(self)


@pytest.fixture
def world(monkeypatch):
    world = World()

    async def describe_topic(_, name, _operation):
        assert name == "records"
        return TopicFacts(COUNT, frozenset({"delete"}), LIMIT, -1)

    async def ensure_compacted_topic(_, name):
        assert name == ENTRIES_AT.topic
        return TopicFacts(1, frozenset({"compact"}), LIMIT + 1, -1)

    async def latest_entries(_, at):
        assert at == ENTRIES_AT
        return {key: value for key, value in world.entries.items() if value is not None}

    monkeypatch.setattr(module, "TransactionalProducer", world.producer)
    monkeypatch.setattr(module, "describe_topic", describe_topic)
    monkeypatch.setattr(module, "ensure_compacted_topic", ensure_compacted_topic)
    monkeypatch.setattr(module, "latest_entries", latest_entries)
    return world


def ledger(name="one"):
    return Ledger(Settings(), name, "records")


def run(story):
    asyncio.run(story())


def test_entries_are_remembered_under_the_name_alone(world):
    async def story():
        one, other = ledger("one"), ledger("on")
        assert await one.open() == {}
        await one.commit((), {b"file/1": b"10", b"file/2": b"20"})
        await one.commit((), {b"file/1": None})
        await other.open()
        await other.commit((), {b"file/2": b"99"})
        assert await ledger("one").open() == {b"file/2": b"20"}
        assert await ledger("on").open() == {b"file/2": b"99"}

    run(story)


def test_messages_keep_their_order_and_go_where_javas_clients_send_them(world):
    choose, everywhere = DefaultPartitioner(), list(range(COUNT))
    messages = [Outgoing("records", b"s%d" % (it % 7), b"%d" % it) for it in range(40)]
    messages.append(Outgoing("records", b"s1", None, [("h", b"v")], partition=4, timestamp_ms=9))

    async def story():
        it = ledger()
        await it.open()
        await it.commit(messages, {b"file": b"40"}, "offsets")

    run(story)
    sendings, offsets = world.committed[-1]
    assert offsets == "offsets"
    assert sendings[-1] == (ENTRIES_AT, [Message(b"one/file", b"40", ())])
    sent = {target.partition: list(found) for target, found in sendings[:-1]}
    assert sent[4].pop() == Message(b"s1", None, [("h", b"v")], 9)
    for number, found in sent.items():
        expected = [it for it in messages[:-1] if choose(it.key, everywhere, everywhere) == number]
        assert [(it.key, it.value) for it in found] == [(it.key, it.value) for it in expected]
    assert sum(map(len, sent.values())) == 40


def test_batches_stay_below_what_the_topic_takes(world):
    async def story():
        await ledger().open()

    run(story)
    [producer] = world.open_producers
    assert LIMIT - 10_000 < producer.max_batch_bytes < LIMIT
    assert producer.transactional_id == "processor-positions-one"


def test_message_too_large_names_itself(world):
    large = Outgoing("records", b"s", b"x" * 2_000)

    async def story():
        it = ledger()
        await it.open()
        world.failure = RefusedError("x", "records", [Message(b"s", large.value, ())])
        with pytest.raises(OutgoingTooLargeError, match=r"2,001 bytes .* topic records") as error:
            await it.commit([Outgoing("records", b"s", b"small"), large], {b"file": b"1"})
        assert error.value.message is large

    run(story)
    assert b"one/file" not in world.entries


def test_refused_entry_names_the_topic(world):
    async def story():
        it = ledger()
        await it.open()
        world.failure = RefusedError("x", "processor-positions", [Message(b"one/file", b"", ())])
        with pytest.raises(ConfigError, match="topic processor-positions"):
            await it.commit([Outgoing("records", b"s", b"small")], {b"file": b""})

    run(story)


def test_after_a_failure_nothing_is_written_until_it_is_opened_again(world):
    async def story():
        it = ledger()
        await it.open()
        world.failure = UnreachableError("no answer")
        with pytest.raises(UnreachableError):
            await it.commit((), {b"file": b"1"})
        assert world.open_producers == []
        world.failure = None
        with pytest.raises(FencedError, match="not open"):
            await it.commit((), {b"file": b"1"})
        assert await it.open() == {}
        await it.commit((), {b"file": b"1"})

    run(story)


def test_commit_without_an_answer_is_given_up(world, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_COMMIT_S", 0.01)

    async def never(*_):
        await asyncio.get_running_loop().create_future()

    async def story():
        it = ledger()
        await it.open()
        world.open_producers[0].commit = never
        with pytest.raises(UnreachableError, match="no answer to a commit"):
            await it.commit((), {})
        assert world.open_producers == []

    run(story)


def test_older_one_of_a_name_stops_and_the_newer_goes_on(world):
    async def story():
        older, newer = ledger(), ledger()
        await older.open()
        await newer.open()
        with pytest.raises(FencedError):
            await older.commit((), {b"file": b"1"})
        with pytest.raises(FencedError, match=r"another one .* name 'one'.*process"):
            await older.open()
        # Looking has fenced the newer one, which finds itself the owner and goes on.
        with pytest.raises(FencedError):
            await newer.commit((), {b"file": b"1"})
        await newer.open()
        await newer.commit((), {b"file": b"1"})

    run(story)


def test_fence_that_was_nobody_elses_is_no_reason_to_stop(world):
    """A transaction that timed out while the machine slept, or an id unused for a week."""

    async def story():
        it = ledger()
        await it.open()
        world.open_producers.clear()
        with pytest.raises(FencedError):
            await it.commit((), {b"file": b"1"})
        await it.open()
        await it.commit((), {b"file": b"1"})

    run(story)
