"""Whatever is sent to health, metrics and status page, they answer or close, and go on."""

import asyncio
import contextlib
import re
import socket

from aiohttp import web
from hypothesis import given

from processor.ops.http import HttpServer
from tests.property.damage import bounded, damaged

GOOD = b"GET / HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\nConnection: close\r\n\r\n"
REQUESTS = [
    GOOD,
    b"HEAD /metrics?a=%41 HTTP/1.0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"GET http://x:1/livez HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc" + GOOD,
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
]


async def answer_to(port, sent, wait_s):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        # A request that is cut off is answered by nobody, until its end is.
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(reader.read(100), wait_s)
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), 20)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def serve(sent):
    server = HttpServer({"/": lambda accept: web.Response(text=f"{len(accept)}")})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    await server.start("127.0.0.1", port)
    try:
        return await answer_to(port, sent, 0.02), await answer_to(port, GOOD, 20)
    finally:
        await server.stop()


@given(damaged(REQUESTS))
def test_any_request_is_answered_or_refused_and_the_next_one_is_answered(sent):
    with bounded():
        answer, next_answer = asyncio.run(serve(sent))
    assert not answer or re.match(rb"HTTP/\d\.\d [24]", answer)
    assert next_answer.startswith(b"HTTP/1.1 200")
