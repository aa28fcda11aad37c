import asyncio
import signal
import threading
from contextlib import aclosing, asynccontextmanager, closing

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import CommitFailedError, NoOffsetForPartitionError, OffsetOutOfRangeError

from processor.client import read_chunks
from processor.client.chain import Chains
from processor.client.delivery import Delivery, commit, each
from processor.client.reading import checked
from processor.client.threaded import in_a_thread
from processor.core.errors import ConfigError, GapError, StateError
from processor.settings import Settings
from tests.builders import chunk_lines
from tests.unit.client.delivering import messages_of, nowhere

LINES = chunk_lines(b"a b", b"c d", b"e f")
PLACE = TopicPartition("chunks", 0)


class Group:
    """What a broker keeps of a group, and whether its consumer was stopped."""

    def __init__(self, messages=()):
        self.messages = list(messages)
        self.committed = 0
        self.stopped = 0


class GroupConsumer:
    """A consumer of one partition that ends by an error after its last message."""

    def __init__(self, group, errors=()):
        self._group = group
        self._at = group.committed
        self._errors = list(errors)
        self.sought = []

    async def getone(self):
        if self._errors:
            raise self._errors.pop(0)
        if self._at == len(self._group.messages):
            raise OffsetOutOfRangeError({PLACE: self._at})
        self._at += 1
        return self._group.messages[self._at - 1]

    async def commit(self):
        self._group.committed = self._at

    async def seek_to_beginning(self, place):
        self.sought.append(place)

    def assignment(self):
        return {PLACE}


class Reader:
    """Reads as a member of a group, without a broker."""

    def __init__(self, messages):
        self.group = Group(messages)

    @asynccontextmanager
    async def shared(self):
        consumer = GroupConsumer(self.group)
        try:
            yield Delivery(each(consumer, Settings()), lambda: commit(consumer, Settings()))
        finally:
            self.group.stopped += 1

    def chunks(self, after=nowhere):
        return checked(self.shared(), Chains(after), None)

    def read(self, count):
        async def run():
            async with aclosing(self.chunks()) as chunks:
                return [(await anext(chunks)).t for _ in range(count)]

        return asyncio.run(run())

    def read_sync(self, count, after=nowhere):
        with closing(in_a_thread(self.chunks(after))) as chunks:
            return [next(chunks) for _ in range(count)]


@pytest.fixture
def reader():
    return Reader(messages_of(LINES))


def test_the_position_moves_when_the_next_chunk_is_asked_for(reader):
    assert reader.read(2) == [1, 2]
    assert reader.group.committed == 1
    assert reader.read(2) == [2, 3]


def test_a_body_that_fails_leaves_its_chunk_undone(reader):
    async def run():
        async for _ in reader.chunks():
            raise KeyError

    with pytest.raises(KeyError):
        asyncio.run(run())
    assert reader.group.committed == 0
    assert reader.group.stopped == 1


def test_the_position_stays_before_a_fault(reader):
    del reader.group.messages[1]
    with pytest.raises(GapError):
        reader.read(2)
    assert reader.group.committed == 1


def test_chunks_that_were_deleted_unread_are_an_error(reader):
    with pytest.raises(StateError, match="deleted before they were read"):
        reader.read(4)
    assert reader.group.committed == 3


def test_a_new_group_begins_at_the_oldest_chunk():
    consumer = GroupConsumer(Group(messages_of(LINES)), [NoOffsetForPartitionError(PLACE)])

    async def run():
        async with aclosing(each(consumer, Settings())) as messages:
            return await anext(messages)

    assert asyncio.run(run()).offset == 0
    assert consumer.sought == [PLACE]


def test_a_position_that_the_group_no_longer_takes_is_told_and_no_error(caplog):
    class Moved(GroupConsumer):
        async def commit(self):
            raise CommitFailedError

    asyncio.run(commit(Moved(Group()), Settings()))
    assert "comes again" in caplog.text


def test_a_group_does_not_end():
    with pytest.raises(ConfigError, match="follow=False"):
        read_chunks(Settings(), group="g", follow=False)


def test_the_sync_twin_reads_the_same(reader):
    assert [it.t for it in reader.read_sync(2)] == [1, 2]
    assert reader.group.committed == 1
    assert reader.group.stopped == 1
    assert not [it for it in threading.enumerate() if it.name == "chunks"]


def test_the_sync_twin_raises_what_the_reader_raises(reader):
    with pytest.raises(StateError, match="deleted"):
        list(in_a_thread(reader.chunks()))
    assert reader.group.stopped == 1


def test_the_sync_twin_asks_its_caller_for_positions(reader):
    (first,) = reader.read_sync(1)
    assert [it.t for it in reader.read_sync(2, lambda _: first.position)] == [2, 3]


def test_the_sync_twin_ends_with_the_reader():
    async def two():
        yield 1
        yield 2

    assert list(in_a_thread(two())) == [1, 2]


def test_an_interruption_of_the_sync_twin_closes_the_reader():
    closed = []

    async def silent():
        try:
            # Ctrl-C, while the caller waits
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            await asyncio.Event().wait()
            yield 1
        finally:
            closed.append(True)

    # A shell that starts a run behind itself (`&`) has it ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(in_a_thread(silent()))
    finally:
        signal.signal(signal.SIGINT, before)
    assert closed
