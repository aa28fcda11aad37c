"""The worker on a broker that behaves; faults are in ``test_faults.py``."""

import asyncio
import json
import time
from collections import Counter

from processor.demo.transcripts import transcripts
from tests.e2e.producing import Line, ends_of, lines_of, producer


def chunks_of(app, session=None):
    """Return the app's chunks, or those of one session, parsed."""
    found = [json.loads(message.value) for message in app.read(app.chunks)]
    return [chunk for chunk in found if session in (None, chunk["session"])]


def test_fifty_thousand_records_of_two_hundred_sessions_come_out_whole(deploy):
    app = deploy()
    lines = lines_of(transcripts(50_000, 1, sessions=200, max_line_bytes=60_000))
    assert any(len(line.value) > 4 * 5_000 for line in lines)
    app.start()
    app.send(lines, producers=4)
    before = app.judged(within_s=120)
    assert (before.records, before.sessions) == (50_000, 200)
    assert before.open > 0
    app.send(ends_of(lines))
    after = app.judged()
    assert (after.records, after.sessions, after.open) == (50_000, 200, 0)
    assert after.chunks > before.chunks


def test_second_worker_joins_and_leaves_while_records_flow(deploy):
    app = deploy()
    lines = lines_of(transcripts(16_000, 2, sessions=60, max_line_bytes=8_000))
    app.start()
    app.wait_for_members(1)
    with app.flow(lines, per_s=2_000) as flow:
        flow.wait_for(0.2)
        guest = app.start()
        app.wait_for_members(2)
        app.wait_for_output(guest, "partition is ready")
        flow.wait_for(0.6)
        assert guest.terminate() == 0
        app.wait_for_members(1)
    assert app.judged().records == 16_000


def test_sigterm_commits_what_is_staged_and_a_restart_goes_on(deploy):
    # Longer than this test: only the end of the worker commits.
    app = deploy(partitions=1, commit_interval_s=300)
    lines = lines_of(transcripts(3_000, 3, sessions=10, max_line_bytes=8_000))
    app.send(lines[:2_000])
    worker = app.start()
    app.wait_for_output(worker, "partition is ready")
    time.sleep(3)  # nothing outside shows that the worker has read all there is
    assert app.read(app.chunks) == []
    assert worker.terminate() == 0
    assert len(app.read(app.chunks)) > 20
    app.send(lines[2_000:])
    app.start(commit_interval_s=0.1)
    assert app.judged().records == 3_000


def test_restarts_with_open_chunks_change_no_byte(deploy):
    lines = lines_of(transcripts(6_000, 4, sessions=40, max_line_bytes=30_000))
    restarted = deploy(idle_s=0)
    portions = [lines[:2_000], lines[2_000:4_000], lines[4_000:]]
    for number, portion in enumerate(portions):
        restarted.send(portion, producers=2)
        worker = restarted.start()
        restarted.wait_until_caught_up()
        if number % 2:
            restarted.kill(worker)
        else:
            assert worker.terminate() == 0
    restarted.send(ends_of(lines[:100]))
    restarted.start()
    assert restarted.judged().open > 0

    undisturbed = deploy(idle_s=0, records_topic=restarted.records)
    undisturbed.start()
    undisturbed.judged()
    one, other = (
        [(message.partition, message.key, message.value, message.headers) for message in found]
        for found in (restarted.read(restarted.chunks), undisturbed.read(undisturbed.chunks))
    )
    assert sorted(one, key=lambda it: it[0]) == sorted(other, key=lambda it: it[0])


def test_end_of_session_closes_it_once_and_what_follows_goes_on(deploy):
    app = deploy(partitions=2, idle_s=0)
    app.start()
    app.send([Line(b"s1", b'{"n":%d}' % number) for number in range(3)])
    app.send([Line(b"s1", None), Line(b"s1", None), Line(b"never", None)])
    app.send([Line(b"s1", b'"again"'), Line(b"other", b'"open"')])
    app.send([Line(b"s1", None)])
    verdict = app.judged()
    assert (verdict.chunks, verdict.open) == (3, 1)
    assert [
        (chunk["t"], chunk["final"], chunk["flush"], len(chunk["records"]))
        for chunk in chunks_of(app, "s1")
    ] == [(1, True, "end", 3), (2, True, "end", 1)]
    [never] = chunks_of(app, "never")
    assert (never["t"], never["final"], never["records"]) == (1, True, [])


def test_end_after_everything_was_flushed_is_an_empty_final_chunk(deploy):
    app = deploy(partitions=1, idle_s=0)
    app.start()
    app.send([Line(b"s1", b"x" * 30_000), Line(b"s1", None)])
    app.judged()
    assert [
        (chunk["t"], chunk["final"], chunk["over_budget"], len(chunk["records"]))
        for chunk in chunks_of(app)
    ] == [(1, False, True, 1), (2, True, False, 0)]


def test_quiet_session_is_closed_by_the_clock(deploy):
    app = deploy(partitions=2, idle_s=1, clock_grace_s=0.2)
    app.start()
    app.wait_for_members(1)
    for number, word in enumerate((b'"one"', b'"two"'), start=1):
        app.send([Line(b"s1", word)])
        app.wait_for_chunks(2 * number - 1, within_s=10)  # with each chunk a commit marker
    verdict = app.judged()
    assert verdict.open == 0
    assert [(chunk["t"], chunk["flush"], chunk.get("clock")) for chunk in chunks_of(app)] == [
        (1, "idle", True),
        (2, "idle", True),
    ]


def test_records_without_a_session_are_dead_letters_once_each(deploy):
    app = deploy(partitions=1)
    headers = (("trace", b"\x00\xff"), ("trace", b"twice"), ("other", b""))
    strays = [
        Line(None, b"no key", 0, headers),
        Line(b"", b"empty key", 0),
        Line(b"\xff\xfe", b"not UTF-8", 0),
        Line(b"\xff\xfe", None, 0),
    ]
    app.send([Line(b"s1", b'"before"'), *strays, Line(b"s1", b'"after"')])
    first = app.start()
    app.judged()
    app.kill(first)
    # The open chunk makes the next worker read the same records again.
    app.start()
    app.send([*strays, Line(b"s1", None)])
    verdict = app.judged()
    assert (verdict.dead_letters, verdict.records, verdict.open) == (8, 2, 0)
    letters = app.read(app.topics.dead_letter_topic)
    # As the log has them: noida-db keeps one header of a name.
    [origin] = [record for record in app.read(app.records) if record.value == b"no key"][:1]
    assert origin.headers
    assert letters[0].headers[: len(origin.headers)] == origin.headers
    reasons = Counter(dict(letter.headers)["processor-reason"] for letter in letters)
    assert reasons == {b"no-key": 4, b"key-not-utf8": 4}
    for letter in letters:
        said = dict(letter.headers)
        assert said["__connect.errors.topic"] == app.records.encode()
        assert said["__connect.errors.exception.message"].startswith(b"no session: ")


def test_aborted_records_appear_nowhere(deploy):
    app = deploy(partitions=2)
    for _ in range(2):
        app.start()

    async def write(name):
        """Write transactions of records, every second one aborted, an end among them too."""
        lines = [line for _, line in transcripts(600, 5, sessions=3, max_line_bytes=8_000)]
        async with producer(app.bootstrap, transactional_id=f"{app.records}-{name}") as client:
            for number in range(30):
                await client.begin_transaction()
                kept, word = (number % 2 == 0), b"kept" if number % 2 == 0 else b"aborted"
                for at, line in enumerate(lines[20 * number : 20 * number + 20]):
                    key = b"%s-%d" % (name.encode(), at % 4)
                    await client.send(app.records, b'["%s",%s]' % (word, line), key)
                await client.send(app.records, None, b"%s-0" % name.encode())
                await (client.commit_transaction() if kept else client.abort_transaction())

    async def write_all():
        await asyncio.gather(*(write(name) for name in ("one", "two")))

    asyncio.run(write_all())
    verdict = app.judged()
    assert (verdict.records, verdict.sessions) == (600, 8)
    assert all(b'["aborted",' not in message.value for message in app.read(app.chunks))
