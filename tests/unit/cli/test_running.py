"""What signals do to a worker, in a process of its own, since some end it; and how it ends."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from processor.cli import running
from processor.core.errors import ConfigError, StateError

ROOT = Path(__file__).parents[3]

SLOW_TO_STOP = """
    import asyncio, logging, faust
    from processor.cli import running

    running._ONE_WISH_S = {one_wish_s}

    class Slow(running._Worker):
        async def stop(self):
            print("stopping", flush=True)
            await asyncio.Event().wait()

    async def wait_for_ever():
        password = "hush" + "-hush"
        print("ready", flush=True)
        await asyncio.Event().wait()

    logging.basicConfig()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    worker = Slow(faust.App("a", loop=loop), loop=loop, override_logging=False, quiet=True)
    worker.install_signal_handlers()
    loop.run_until_complete(wait_for_ever())
"""


@contextmanager
def slow_worker(one_wish_s):
    """Run one, for which signals within so many seconds are one."""
    process = subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-c", textwrap.dedent(SLOW_TO_STOP).format(one_wish_s=one_wish_s)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
def test_second_signal_ends_a_worker_that_is_slow_to_stop(first):
    with slow_worker(0) as process:
        process.send_signal(first)
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 128 + signal.SIGTERM
        assert "told to stop twice" in process.stderr.read()


def test_signal_that_comes_twice_at_once_is_one():
    """Ctrl-C reaches the whole process group, and a supervisor passes it on."""
    with slow_worker(60) as process:
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopping\n"
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)


def test_worker_tells_where_it_stands_and_no_values():
    """Symptom: SIGUSR1 wrote local variables to stderr, a password and records among them."""
    with slow_worker(60) as process:
        process.send_signal(signal.SIGUSR1)
        said = ""
        while "most recent call first" not in said:
            said += process.stderr.readline()
        process.kill()
        said += process.communicate()[1]
    assert "wait_for_ever" in said
    assert "hush-hush" not in said


def test_last_event_of_a_log_for_collectors_says_what_a_worker_ended_for():
    done = subprocess.run(
        [sys.executable, "-m", "processor", "worker"],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
            "PROCESSOR_APP_ID": "a",
            "PROCESSOR_HTTP_PORT": "0",
            "PROCESSOR_LOG_FORMAT": "json",
            "PROCESSOR_TOKEN_COUNTER": "chars_over_four",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 69, done.stderr
    *events, last = done.stderr.splitlines()
    assert last.startswith("processor: no answer from 127.0.0.1:1")
    ended = json.loads(events[-1])
    assert (ended["level"], ended["message"]) == ("error", "ended by a fault")
    assert last == f"processor: {ended['error']}"


FAULT = ConfigError("a right is missing")
FURTHER = (asyncio.CancelledError(), SystemExit(1), StateError("another"), RuntimeError("closed"))


@pytest.mark.parametrize("further", [*FURTHER, SystemExit(0)], ids=repr)
def test_process_ends_for_its_first_fault_whatever_faust_says_beside_it(ends, further):
    """Symptom: exit 1, not 78, when a right was taken away in the moment that agents started."""
    with pytest.raises(ConfigError) as ended:
        ends(FAULT, further)
    assert ended.value is FAULT


@pytest.mark.parametrize("unknown", FURTHER, ids=repr)
def test_fault_that_nobody_knows_is_raised_as_it_is(ends, unknown):
    with pytest.raises(type(unknown)) as ended:
        ends(None, unknown)
    assert ended.value is unknown


def test_worker_that_was_told_to_stop_ends_without_a_word(ends):
    ends(None, SystemExit(0))


@pytest.fixture
def ends(monkeypatch):
    """A function that runs an app which has ended for ``fatal``, while Faust raises something."""

    def run(fatal, raised):
        def execute():
            asyncio.get_event_loop_policy().get_event_loop().close()
            raise raised

        app = SimpleNamespace(
            fatal=fatal, settings=SimpleNamespace(log_format="text"), consumer_generation_id=0
        )
        worker = SimpleNamespace(execute_from_commandline=execute)
        monkeypatch.setattr(running, "_Worker", lambda *_, **__: worker)
        monkeypatch.setattr(running, "add_field", lambda *_: None)
        monkeypatch.setattr(running, "_is_unexpected", lambda *_: True)
        running.run_app(app)

    return run
