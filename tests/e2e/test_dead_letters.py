"""Dead letters: looked at, and sent to the records topic again, each once, whatever is killed."""

import asyncio
import json
import signal
import textwrap
import time
import zlib
from collections import Counter

import pytest

from processor.kafka.topics import has_topic
from tests.e2e import asking
from tests.e2e.log_reading import end_offsets
from tests.e2e.producing import Line

SESSIONS = 40
COUNT = 2_500
BY_FIELD = ("--session-field", "about.session")
#: The verb, killed with its third transaction: the first says who it is, the second is a batch.
KILLED = """
    import os, signal, sys

    from aiokafka import AIOKafkaProducer

    from processor.cli import main

    commit, commits = AIOKafkaProducer.commit_transaction, 0


    async def commit_or_die(self):
        global commits
        commits += 1
        {first}
        if commits == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        {then}


    AIOKafkaProducer.commit_transaction = commit_or_die
    sys.exit(main())
"""
BEFORE, AFTER = (
    {"first": "", "then": "await commit(self)"},
    {"first": "await commit(self)", "then": ""},
)


def strays(count):
    """Records without a key that know their session, in two partitions."""
    for number in range(count):
        about = {"n": number, "about": {"session": f"s{number % SESSIONS}"}}
        yield Line(None, json.dumps(about).encode(), number % 2, (("trace", b"%d" % number),))


def set_aside(app, lines):
    """Have a worker make dead letters of lines."""
    app.send(lines)
    worker = app.start()
    app.wait_until_caught_up()
    assert worker.terminate() == 0


def redriven(app):
    """Return the records that are there again, by partition and offset."""
    found = app.read(app.records)
    return [it for it in found if "processor-replay-count" in dict(it.headers)]


@pytest.fixture
def app(deploy):
    """An app that takes any number of dead letters."""
    unlimited = {"max_dead_letter_ratio": 1, "max_consecutive_dead_letters": 0}
    return deploy(partitions=2, idle_s=0, **unlimited)


def run(app, *arguments, code=0):
    done = app.run("dead-letters", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def run_json(app, *arguments, code=0):
    printed = run(app, *arguments, "--output", "json", code=code)
    return [json.loads(line) for line in printed.splitlines()]


def test_letters_are_listed_without_content_and_shown_with_it(app):
    value = b'{"secret":"\x1b[31m"}'
    set_aside(app, [Line(None, value, 0), Line(b"\xff", b"\x00\xff", 1), Line(b"\xff", None, 1)])
    printed = run(app, "list")
    assert "secret" not in printed
    assert [line.split("  ")[2:5] for line in printed.splitlines()] == [
        ["no-key", f"{app.records}[0]@0", f"{len(value)} bytes"],
        ["key-not-utf8", f"{app.records}[1]@0", "2 bytes"],
        ["key-not-utf8", f"{app.records}[1]@1", "end of session"],
    ]
    place = printed.split()[0]
    [shown] = run_json(app, "show", place)
    assert (shown["letter"], shown["value"]) == (place, value.decode())
    assert run(app, "show", "0", "0", "--raw").encode() == value
    assert run(app, "list", "--max", "1").splitlines() == printed.splitlines()[:1]
    assert len(run(app, "list", "--reason", "no-key", "--since", "1h").splitlines()) == 1
    assert run(app, "list", "--since", "2100-01-01") == ""
    assert run_json(app, "list", "--count") == [
        {"reason": reason, "origin": f"{app.records}[{at}]", "redriven": False, "count": count}
        for reason, at, count in (("key-not-utf8", 1, 2), ("no-key", 0, 1))
    ]
    assert "no dead letter at" in app.run("dead-letters", "show", "0", "7").stderr


def test_killed_beside_a_commit_and_run_again_each_letter_is_a_record_once(app):
    lines = list(strays(COUNT))
    set_aside(app, lines)
    # The last one leaves no transaction open, for which a reader would have to wait.
    for how in (BEFORE, BEFORE, AFTER):
        script = textwrap.dedent(KILLED.format(**how))
        killed = app.start("-c", script, "dead-letters", "redrive", *BY_FIELD)
        assert killed.exit_code(within_s=60) == -signal.SIGKILL
    # One batch of the first and the second each, two of the third.
    assert len(redriven(app)) == 2_000
    [last] = run_json(app, "redrive", *BY_FIELD)
    assert last == {
        "dry_run": False,
        "redriven": 500,
        "sessions": SESSIONS // 2,  # those of one partition
        "redriven_before": 2_000,
        "left": 0,
    }
    [again] = run_json(app, "redrive", *BY_FIELD)
    assert (again["redriven"], again["redriven_before"]) == (0, COUNT)
    found = redriven(app)
    assert Counter(it.value for it in found) == Counter(line.value for line in lines)
    for it in found:
        about, headers = json.loads(it.value), dict(it.headers)
        assert it.key == about["about"]["session"].encode()
        assert headers.keys() == {"trace", "processor-origin", "processor-replay-count"}
        assert headers["trace"] == b"%d" % about["n"]
        assert headers["processor-origin"].startswith(f"{app.records}[{about['n'] % 2}]@".encode())
    assert {row["redriven"] for row in run_json(app, "list", "--count")} == {True}
    app.start()
    app.send([Line(b"s%d" % number, None) for number in range(SESSIONS)])
    verdict = app.judged()
    assert (verdict.records, verdict.dead_letters, verdict.open) == (COUNT, COUNT, 0)
    verified = app.run("verify")
    assert verified.returncode == 0, verified.stdout


def test_what_has_no_session_stays_until_it_is_given_one(app):
    bodies = [b'{"about":{"session":"s1"}}', b'{"about":{}}', b"plain", b"\xff"]
    set_aside(app, [*(Line(None, body, 0) for body in bodies), Line(b"\xff", b'"bad key"', 1)])

    ends = asyncio.run(end_offsets(app.bootstrap, app.records))
    [would] = run_json(app, "redrive", *BY_FIELD, "--dry-run", code=1)
    assert would == {
        "dry_run": True,
        "redriven": 1,
        "sessions": 1,
        "redriven_before": 0,
        "left": 4,
    }
    assert asyncio.run(end_offsets(app.bootstrap, app.records)) == ends
    assert not asyncio.run(has_topic(app.topics, app.topics.positions_topic))

    done = app.run("dead-letters", "redrive", *BY_FIELD)
    assert done.returncode == 1
    assert done.stdout == (
        f"redrove 1 dead letters in 1 sessions to {app.records}; 4 left where they are\n"
    )
    assert f"{app.topics.dead_letter_topic}[0]@1: no session at 'about.session'" in done.stderr
    rescued = ("redrive", "--session", "rescued", "--partitioner", "crc32")
    [bad_key] = run_json(app, *rescued, "--reason", "key-not-utf8", "--max", "5")
    [rest] = run_json(app, *rescued)
    assert (bad_key["redriven"], rest["redriven"], rest["redriven_before"]) == (1, 3, 2)
    app.start()
    verdict = app.judged()
    assert (verdict.records, verdict.sessions, verdict.open) == (5, 2, 5)
    in_session = [it for it in redriven(app) if it.key == b"rescued"]
    assert [it.value for it in in_session] == [b'"bad key"', b'{"about":{}}', b"plain", b"\xff"]
    assert {it.partition for it in in_session} == {zlib.crc32(b"rescued") % 2}


def test_dead_letter_topic_that_was_made_anew_is_noticed(app):
    """Its offsets begin at 0 again: the letters there now were never sent."""
    set_aside(app, [Line(None, b'"first"', 0)])
    run(app, "redrive", "--session", "s1")
    asyncio.run(asking.delete_topic(app.bootstrap, app.topics.dead_letter_topic))
    time.sleep(1)  # a broker deletes behind its answer
    app.create_topics()
    set_aside(app, [Line(None, b'"second"', 0)])
    done = app.run("dead-letters", "redrive", "--session", "s1")
    assert done.returncode == 70
    assert "made anew. To take none of its letters for sent, run once with --forget" in done.stderr
    [forgotten] = run_json(app, "redrive", "--session", "s1", "--forget")
    assert forgotten["redriven"] == 1
    assert [it.value for it in redriven(app)] == [b'"first"', b'"second"']
