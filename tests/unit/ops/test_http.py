"""The HTTP server, asked over a real socket."""

import asyncio

import pytest
from aiohttp import ClientSession, web

from processor.core.errors import ConfigError
from processor.demo.local_broker import free_ports
from processor.ops.http import HttpServer


def ask(asking, pages=None):
    """Serve ``pages`` and return what ``asking`` returns of a client and the server's address."""

    async def serve():
        server = HttpServer(pages or {"/": lambda accept: web.Response(text=accept)})
        url = await server.start("127.0.0.1", free_ports(1)[0])
        try:
            async with ClientSession() as client:
                return await asking(client, url)
        finally:
            await server.stop()

    return asyncio.run(serve())


def test_page_is_made_for_what_the_client_accepts():
    async def asking(client, url):
        async with client.get(url, headers={"Accept": "text/x"}) as answer:
            return answer.status, await answer.text(), answer.headers["X-Content-Type-Options"]

    assert ask(asking) == (200, "text/x", "nosniff")


def test_head_is_answered_without_a_body():
    async def asking(client, url):
        async with client.head(url, headers={"Accept": "text/x"}) as answer:
            return answer.status, answer.headers["Content-Length"], await answer.read()

    assert ask(asking) == (200, "6", b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_refused(method):
    async def asking(client, url):
        async with client.request(method, url) as answer:
            return answer.status, answer.headers["Allow"]

    assert ask(asking) == (405, "GET, HEAD")


def test_path_that_is_not_in_the_table_is_not_found_and_the_answer_says_what_is():
    async def asking(client, url):
        async with client.get(f"{url}etc/passwd") as answer:
            return answer.status, await answer.text()

    status, text = ask(asking, {"/livez": None, "/metrics": None})
    assert (status, text) == (404, "not found; there are: /livez /metrics\n")


def test_host_header_does_not_matter():
    async def asking(client, url):
        async with client.get(url, headers={"Host": "elsewhere.example"}) as answer:
            return answer.status

    assert ask(asking) == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 500 + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    ],
    ids=["long line", "long header", "many headers", "TLS"],
)
def test_request_that_is_too_large_or_none_is_refused_and_not_logged(sent, caplog):
    async def asking(_client, url):
        port = int(url.rstrip("/").rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        return answer

    assert ask(asking).startswith((b"HTTP/1.0 400", b"HTTP/1.1 400"))
    assert not caplog.records


def test_body_is_not_read():
    async def asking(_client, url):
        port = int(url.rstrip("/").rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nsome")
        answer = await asyncio.wait_for(reader.read(), 10)  # until the server closes
        writer.close()
        return answer

    assert ask(asking).startswith(b"HTTP/1.1 200")


async def _listening(count):
    port, *others = free_ports(count)
    first, second = HttpServer({}), HttpServer({})
    await first.start("127.0.0.1", port)
    try:
        return others, await second.start("127.0.0.1", port, *others)
    finally:
        await first.stop()
        await second.stop()


def test_port_that_is_taken_is_an_error_which_names_the_setting():
    with pytest.raises(ConfigError, match=r"PROCESSOR_HTTP_PORT=.*another worker"):
        asyncio.run(_listening(1))


def test_next_port_is_taken_where_the_first_is_taken():
    [other], url = asyncio.run(_listening(2))
    assert url == f"http://127.0.0.1:{other}/"


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_address_of_another_machine_is_an_error_which_names_the_setting(host):
    async def listen():
        server = HttpServer({})
        try:
            await server.start(host, *free_ports(2))
        finally:
            await server.stop()

    with pytest.raises(ConfigError, match=f"PROCESSOR_HTTP_HOST={host}"):
        asyncio.run(listen())


def test_server_that_was_never_started_stops():
    asyncio.run(HttpServer({}).stop())
