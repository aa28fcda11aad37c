"""Sessions that are forgotten after their end, and what comes for them then."""

import asyncio
import json
import time

import pytest

from tests.e2e.producing import Line

FORGET_S = 2.0


def tell(app, session):
    """The index of each chunk of a session, and whether it is final."""
    chunks = [json.loads(it.value) for it in app.read(app.chunks) if it.key == session]
    return [(it["t"], it["final"]) for it in chunks]


@pytest.mark.needs("eviction")
def test_a_forgotten_session_begins_anew_whatever_happens_to_workers(deploy):
    app = deploy(partitions=1, idle_s=0, forget_ended_after_s=FORGET_S)
    worker = app.start()
    app.send([Line(b"a", b"1", 0), Line(b"a", None, 0), Line(b"b", b"1", 0), Line(b"b", None, 0)])
    app.wait_for_chunks(2)
    app.send([Line(b"b", b"2", 0), Line(b"b", None, 0)])
    app.wait_for_chunks(3)
    app.kill(worker)
    worker = app.start()
    time.sleep(FORGET_S + 0.5)  # the log's own time has to pass
    app.send([Line(b"c", b"tick", 0)])
    app.wait_until_caught_up()
    # An open record from here on, so that what follows is replayed.
    app.send([Line(b"a", b"2", 0), Line(b"a", None, 0), Line(b"a", None, 0)])
    app.wait_for_chunks(4)
    app.kill(worker)
    worker = app.start()
    app.send([Line(b"b", None, 0), Line(b"c", None, 0)])
    app.wait_until_caught_up()
    assert tell(app, b"a") == [(1, True), (1, True)]
    assert tell(app, b"b") == [(1, True), (2, True), (1, True)]
    row = json.loads(app.run("state", "show", "--output", "json").stdout)
    assert row["problem"] is None
    time.sleep(FORGET_S + 0.5)
    app.send([Line(b"d", b"tick", 0)])
    app.wait_until_caught_up()

    async def are_dropped():
        changelog = await asyncio.to_thread(app.read, f"{app.topics.app_id}-sessions-changelog")
        latest = {it.key: it.value for it in changelog}
        return [key for key, value in latest.items() if key and value is not None] == []

    app.wait("the entries of forgotten sessions to be gone", are_dropped, within_s=20)
    done = app.run("verify", "--recompute")
    assert done.returncode == 0, done.stdout
    assert "recomputed, 0 different" in done.stdout
