"""What a connection reads is what was sent, however it came in."""

import asyncio
from asyncio import IncompleteReadError, StreamReader
from itertools import pairwise

import aiokafka.conn
import pytest
from aiokafka.conn import AIOKafkaProtocol
from hypothesis import given
from hypothesis import strategies as st

from processor.kafka import stream_reader


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    """Leave aiokafka as it was."""
    monkeypatch.setattr(aiokafka.conn, "AIOKafkaProtocol", AIOKafkaProtocol)


def adopted() -> tuple[StreamReader, AIOKafkaProtocol]:
    """Return a reader and its protocol, as a connection makes them."""
    stream_reader.install()
    loop = asyncio.get_running_loop()
    reader = StreamReader(limit=16, loop=loop)
    protocol = aiokafka.conn.AIOKafkaProtocol(loop.create_future(), reader, loop=loop)
    return reader, protocol


@given(st.binary(max_size=200), st.data())
def test_cuts_on_the_way_in_and_out_change_nothing(sent, data):
    """Pieces of any size in, reads of any size out: the bytes and their order stay."""
    cuts = st.lists(st.integers(0, len(sent)), max_size=12).map(
        lambda it: list(pairwise([0, *sorted(it), len(sent)]))
    )
    pieces, reads = data.draw(cuts), data.draw(cuts)

    async def story():
        reader, protocol = adopted()

        async def feed():
            for begin, end in pieces:
                protocol.data_received(sent[begin:end])
                await asyncio.sleep(0)

        feeding = asyncio.create_task(feed())
        got = [await reader.readexactly(end - begin) for begin, end in reads]
        await feeding
        return got

    assert asyncio.run(story()) == [sent[begin:end] for begin, end in reads]


def test_a_stream_that_ends_too_early_says_what_there_was():
    """As the reader that it replaces: aiokafka closes the connection for it."""

    async def story():
        reader, protocol = adopted()
        protocol.data_received(b"abc")
        reading = asyncio.create_task(reader.readexactly(5))
        await asyncio.sleep(0)
        protocol.eof_received()
        with pytest.raises(IncompleteReadError) as raised:
            await reading
        return raised.value.partial, reader.at_eof()

    assert asyncio.run(story()) == (b"abc", True)


def test_a_broken_connection_ends_a_read_that_waits():
    """Otherwise a request would wait for its whole timeout."""

    async def story():
        reader, protocol = adopted()
        reading = asyncio.create_task(reader.readexactly(5))
        await asyncio.sleep(0)
        protocol.connection_lost(ConnectionResetError("by peer"))
        with pytest.raises(ConnectionResetError):
            await reading

    asyncio.run(story())
