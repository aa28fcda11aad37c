import asyncio
import contextlib

import pytest

from tests.chaos.proxy import HOST, Proxy

SOON_S = 0.2
LONG_S = 10


class Echo:
    """A server that remembers what it heard and answers the same."""

    def __init__(self):
        self.heard = b""
        self.is_over = asyncio.Event()

    async def serve(self, reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(100):
                self.heard += data
                writer.write(data)
        self.is_over.set()
        writer.close()


def run(play):
    """Play with a proxy before an echo: ``play(echo, proxy, reader, writer)``, within a bound."""

    async def main():
        echo = Echo()
        async with (
            asyncio.timeout(LONG_S),
            await asyncio.start_server(echo.serve, HOST, 0) as server,
            Proxy(server.sockets[0].getsockname()[1]) as proxy,
        ):
            reader, writer = await asyncio.open_connection(HOST, proxy.port)
            try:
                await play(echo, proxy, reader, writer)
            finally:
                writer.transport.abort()

    asyncio.run(main())


async def stays_silent(reader):
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(reader.read(100), SOON_S)


def test_whole_network_passes_both_ways():
    async def play(echo, proxy, reader, writer):
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"

    run(play)


@pytest.mark.parametrize(("how", "heard"), [("cut", b""), ("deafness", b"hello")])
def test_broken_network_brings_no_answer_until_it_is_mended_then_all(how, heard):
    """Cut, it passes nothing; a deaf client is heard."""

    async def play(echo, proxy, reader, writer):
        await proxy.break_off(how)
        writer.write(b"hello")
        await stays_silent(reader)
        assert echo.heard == heard
        proxy.mend()
        assert await reader.readexactly(5) == b"hello"

    run(play)


def test_what_a_client_sent_before_it_gave_up_comes_late_and_then_its_end():
    """The late copy of a request that everybody has forgotten."""

    async def play(echo, proxy, reader, writer):
        await proxy.break_off("cut")
        writer.write(b"hello")
        writer.close()
        await asyncio.sleep(SOON_S)
        assert (echo.heard, echo.is_over.is_set()) == (b"", False)
        proxy.mend()
        await echo.is_over.wait()
        assert echo.heard == b"hello"

    run(play)


def test_reset_breaks_connections_and_refuses_new_ones_until_it_is_mended():
    async def play(echo, proxy, reader, writer):
        writer.write(b"a")
        assert await reader.readexactly(1) == b"a"
        await proxy.break_off("reset")
        with pytest.raises(ConnectionResetError):
            await reader.read(100)
        refused, _ = await asyncio.open_connection(HOST, proxy.port)
        with contextlib.suppress(ConnectionResetError):
            assert await refused.read(100) == b""
        proxy.mend()
        again, asks = await asyncio.open_connection(HOST, proxy.port)
        asks.write(b"b")
        assert await again.readexactly(1) == b"b"
        asks.close()

    run(play)
