"""Chunks are a function of the log: other workers, other deaths, the same bytes."""

import json

import pytest

from processor.demo.transcripts import transcripts
from tests.e2e.oracle import QUARTERS
from tests.e2e.producing import ends_of, lines_of

QWEN = "qwen2.5"


def some_lines(count, seed):
    return lines_of(transcripts(count, seed, sessions=60, max_line_bytes=30_000))


def recomputed(app):
    """Run ``processor verify --recompute`` and return what it said last."""
    done = app.run("verify", "--recompute")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()[-1]


def by_session(app):
    """Each session's chunks, to the byte: sessions may stand in any order among each other."""
    found = {}
    for message in app.read(app.chunks):
        session = found.setdefault((message.partition, message.key), [])
        session.append((message.value, message.headers))
    return found


@pytest.mark.needs("eviction")
def test_workers_that_come_and_die_write_what_one_worker_writes_of_the_same_log(deploy):
    """A backlog and one worker; three workers at it; three, two of them killed, one ended."""
    dying = deploy(idle_s=0, commit_interval_s=0.02)
    lines = some_lines(12_000, 31)
    workers = [dying.start() for _ in range(3)]
    dying.wait_for_members(3)
    with dying.flow(lines, per_s=1_500) as flow:
        flow.wait_for(0.2)
        dying.kill(workers[0])
        flow.wait_for(0.5)
        dying.start()
        dying.wait_for_members(3)
        dying.kill(workers[1])
        flow.wait_for(0.8)
        assert workers[2].terminate() == 0
    dying.send(ends_of(lines[: len(lines) // 2]))
    verdict = dying.judged()
    assert verdict.records == 12_000

    together = deploy(idle_s=0, records_topic=dying.records)
    for _ in range(3):
        together.start()
    together.judged()
    alone = deploy(idle_s=0, records_topic=dying.records)
    alone.start()
    alone.judged()

    expected = by_session(alone)
    assert by_session(together) == expected
    assert by_session(dying) == expected
    count = sum(map(len, expected.values()))
    assert recomputed(dying).endswith(f", {count:,} recomputed, 0 different")


def test_chunks_that_the_clock_closed_are_recomputed_to_the_byte(deploy):
    """Live traffic with pauses, an idle time as short as they are, and a worker killed twice."""
    app = deploy(idle_s=0.3, clock_grace_s=0.1, max_age_s=2)
    lines = some_lines(5_000, 32)
    worker = app.start()
    app.wait_for_members(1)
    with app.flow(lines, per_s=500) as flow:
        for share in (0.3, 0.6):
            flow.wait_for(share)
            app.wait_for_chunks(500 * share)
            app.kill(worker)
            worker = app.start()
    app.send(ends_of(lines[:100]))
    verdict = app.judged()
    chunks = app.read(app.chunks)
    clocked = sum(b'"clock":true' in message.value for message in chunks)
    logged = sum(
        b'"flush":"idle"' in message.value and b'"clock"' not in message.value for message in chunks
    )
    assert clocked > 0
    assert logged > 0
    assert verdict.records == 5_000
    said = recomputed(app)
    assert "recomputed, 0 different" in said


def test_counter_changes_in_the_middle_of_a_log_when_that_is_accepted(deploy):
    """Each chunk is counted by the one counter that it names, the open records too."""
    app = deploy(partitions=2, max_replay_records=50)
    lines = some_lines(2_000, 33)
    worker = app.start()
    app.send(lines[:1_000])
    app.judged()
    assert worker.terminate() == 0
    refused = app.start(token_counter=QWEN)
    assert refused.exit_code(within_s=60) == 78
    assert "token_counter 'chars_over_four' -> 'qwen2.5'" in refused.output()
    app.start(token_counter=QWEN, accept_policy_change="true")
    app.send(lines[1_000:])
    app.send(ends_of(lines))
    assert app.judged().records == 2_000
    chunks = [json.loads(message.value) for message in app.read(app.chunks)]
    assert {it["token_counter"] for it in chunks} == {QUARTERS, QWEN}
    assert recomputed(app).endswith(f", {len(chunks):,} recomputed, 0 different")
