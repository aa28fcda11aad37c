"""Chosen headers come out with their records, of a real log, whatever happens to the worker."""

import json

import pytest

from tests.e2e.producing import Line

HEADERS = (("user-id", b"eve"), ("user-id", b"ada"), ("other", b"1"), ("event-time", b"10:15"))
CARRIED = {"event-time": "10:15", "user-id": "ada"}


def some_lines(count):
    """Every other line has headers; each fifth also one that is no text."""
    return [
        Line(
            b"s%d" % (number % 3),
            b'{"n":%d,"text":"%b"}' % (number, b"x" * 600),
            headers=(HEADERS if number % 2 else ())
            + ((("event-time", b"\xff"),) if number % 5 == 0 else ()),
        )
        for number in range(count)
    ]


def expected(number):
    there = dict(CARRIED) if number % 2 else {}
    return there | ({"event-time": {"base64": "/w=="}} if number % 5 == 0 else {})


@pytest.mark.needs("eviction")
def test_headers_survive_checkpoints_and_kills_and_are_recomputed(deploy):
    app = deploy(
        idle_s=0, max_tokens=1000, max_replay_records=10, carry_headers="event-time,user-id"
    )
    worker = app.start()
    with app.flow(some_lines(300), per_s=100) as flow:
        for share in (0.3, 0.6):
            flow.wait_for(share)
            app.kill(worker)
            worker = app.start()
    app.send([Line(b"s%d" % number, None) for number in range(3)])
    app.judged()
    seen = 0
    for message in app.read(app.chunks):
        chunk = json.loads(message.value)
        assert chunk["policy"]["carry_headers"] == ["event-time", "user-id"]
        for record in chunk["records"]:
            assert record.get("headers", {}) == expected(record["value"]["n"])
            seen += 1
    assert seen == 300
    done = app.run("verify", "--recompute")
    assert done.stdout.splitlines()[-1].endswith("recomputed, 0 different"), done.stdout
    assert worker.terminate() == 0
    assert app.start(carry_headers="user-id").exit_code(within_s=40) == 78
    rebuilt = app.run("state", "rebuild", "--all", "--force")
    assert rebuilt.returncode == 0, rebuilt.stderr
    app.start()
    app.send(some_lines(30))
    app.judged()
