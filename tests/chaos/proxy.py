"""A TCP proxy between one worker and one broker, in which the network can break.

Nothing is lost that TCP would not lose: what is held back while the network is cut comes late, as
a retransmission does, and so does the end of a connection that its client has given up.
"""

import asyncio
import contextlib
import socket
import struct
from typing import Final, Literal, Self

from processor.demo.local_broker import HOST

Break = Literal["cut", "deafness", "reset"]
_READ_BYTES: Final = 1 << 16
_RESET: Final = struct.pack("ii", 1, 0)


class Proxy:
    """Passes bytes on to ``target_port``; ``async with`` starts and ends it.

    Attributes:
        port: Where it listens on the loopback address.
    """

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._may_ask, self._may_answer = asyncio.Event(), asyncio.Event()
        self._is_refusing = False
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.mend()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        await self._reset()

    async def break_off(self, how: Break) -> None:
        """Break the network: both ways, the way back alone, or by resets and refusals."""
        self._may_answer.clear()
        if how == "cut":
            self._may_ask.clear()
        if how == "reset":
            self._is_refusing = True
            await self._reset()

    def mend(self) -> None:
        """Let everything pass, what was held back first."""
        self._is_refusing = False
        self._may_ask.set()
        self._may_answer.set()

    async def _reset(self) -> None:
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        if connection is None or self._is_refusing:
            self._drop(writer)
            return
        self._connections.add(connection)
        try:
            await self._connect(reader, writer)
        except asyncio.CancelledError:
            pass  # by _reset, which awaits it; asyncio's server would log it as a failure
        finally:
            self._connections.discard(connection)
            self._drop(writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            answers, asks = await asyncio.open_connection(HOST, self._target_port)
        except OSError:
            return  # nobody listens: the caller's connection breaks, as it would without us
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pass_on(reader, asks, self._may_ask))
                both.create_task(_pass_on(answers, writer, self._may_answer))
        finally:
            self._drop(asks)

    def _drop(self, writer: asyncio.StreamWriter) -> None:
        if self._is_refusing:
            # Without this it would be a polite end of the stream.
            plug: socket.socket = writer.get_extra_info("socket")
            plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        writer.transport.abort()


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, may_pass: asyncio.Event
) -> None:
    """Pass on until the end of the stream, which is passed on too."""
    with contextlib.suppress(OSError):  # one side has broken off; the other hears of its end
        while data := await reader.read(_READ_BYTES):
            await may_pass.wait()
            writer.write(data)
            await writer.drain()
    await may_pass.wait()
    with contextlib.suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()
