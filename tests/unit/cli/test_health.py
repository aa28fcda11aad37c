"""The verb for exec probes, against a worker made up."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from click.testing import CliRunner

from processor.cli.health import health
from processor.core.errors import ConfigError, UnreachableError

WRONG = {"what": "no broker has answered for 12 s", "remedy": "check the brokers"}
SAID = {"/livez": [], "/readyz": [WRONG]}


pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


class Answering(BaseHTTPRequestHandler):
    def do_GET(self):
        problems = SAID[self.path]
        self.send_response(503 if problems else 200)
        self.end_headers()
        self.wfile.write(json.dumps({"ok": not problems, "problems": problems}).encode())

    def log_message(self, *_):
        pass


class Babbling(Answering):
    def do_GET(self):
        self.wfile.write(b"220 mail.example ESMTP\r\n")


@contextmanager
def serving(handler):
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def invoke(*args, **env):
    return CliRunner().invoke(health, args, env={name: str(value) for name, value in env.items()})


def test_worker_that_is_alive_is_said_to_be():
    with serving(Answering) as port:
        ended = invoke(PROCESSOR_HTTP_PORT=port)
    assert (ended.exit_code, ended.stdout) == (0, "live\n")


def test_worker_that_is_not_ready_says_what_is_wrong_and_what_to_do():
    with serving(Answering) as port:
        ended = invoke("--ready", PROCESSOR_HTTP_PORT=port)
    said = "not ready: no broker has answered for 12 s (check the brokers)\n"
    assert (ended.exit_code, ended.stdout) == (1, said)


def test_worker_that_listens_everywhere_is_asked_on_this_machine():
    with serving(Answering) as port:
        ended = invoke(PROCESSOR_HTTP_PORT=port, PROCESSOR_HTTP_HOST="0.0.0.0")  # noqa: S104
    assert ended.exit_code == 0


def test_nobody_there_is_unreachable():
    with serving(Answering) as port:
        pass
    ended = invoke(PROCESSOR_HTTP_PORT=port)
    assert isinstance(ended.exception, UnreachableError)
    assert f"no worker answers at 127.0.0.1:{port}" in str(ended.exception)


def test_something_else_that_listens_there_is_unreachable_too():
    with serving(Babbling) as port:
        assert isinstance(invoke(PROCESSOR_HTTP_PORT=port).exception, UnreachableError)


def test_port_0_is_a_wrong_configuration():
    assert isinstance(invoke(PROCESSOR_HTTP_PORT=0).exception, ConfigError)
