"""`produce --follow` on files that grow under it: killed, fenced, stopped; each line once."""

import asyncio
import random
import signal
import time
from collections import defaultdict

import pytest

from tests.e2e.log_reading import read_log
from tests.e2e.workers import deployments
from tests.unit.sources.following import append

PARTITIONS = 3


@pytest.fixture
def app(deploy):
    return deploy(partitions=PARTITIONS)


@pytest.fixture
def talks(tmp_path):
    folder = tmp_path / "talks"
    folder.mkdir()
    return folder


def start(app, folder, **settings):
    """Start a follower and wait until it follows."""
    command = ("-m", "processor", "produce", "--follow", str(folder), "--name", "one")
    positions = f"{app.topics.app_id}.positions"
    follower = app.start(*command, positions_topic=positions, **settings)
    app.wait_for_output(follower, "following")
    return follower


def sent(app):
    """Return what a reader of committed records finds: values by session, in order."""
    found = defaultdict(list)
    messages = asyncio.run(read_log(app.bootstrap, app.records, settled=False, patience_s=30))
    for it in messages:
        found[it.key.decode()].append(it.value)
    return dict(found)


def wait_until_sent(app, count):
    async def are_there():
        log = await read_log(app.bootstrap, app.records, settled=False, patience_s=30)
        return len(log) >= count

    app.wait(f"{count} records", are_there, within_s=40)


class Writers:
    """Programs that write transcripts: in pieces, one file after the other, rotating some."""

    def __init__(self, folder, file_count):
        self._folder = folder
        self._random = random.Random(5)  # noqa: S311 - the same each time
        self.lines = {f"talk-{number}": [] for number in range(file_count)}
        self._rest = dict.fromkeys(self.lines, b"")

    def write_for(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._write_some()
            time.sleep(0.002)

    def finish(self):
        for name, rest in self._rest.items():
            append(self._path(name), rest)

    def _write_some(self):
        name = self._random.choice(list(self.lines))
        for _ in range(self._random.randrange(4)):
            line = b'{"of":"%s","n":%d,"text":"' % (name.encode(), len(self.lines[name]))
            line += b"x" * self._random.choice([0, 10, 500, 20_000]) + b'"}'
            self.lines[name].append(line)
            self._rest[name] += line + b"\n"
        # Up to anywhere: most often in the middle of a line.
        size = self._random.randint(0, len(self._rest[name]))
        append(self._path(name), self._rest[name][:size])
        self._rest[name] = self._rest[name][size:]
        if self._rest[name] == b"" and self._random.random() < 0.2:
            self._path(name).rename(self._path(name).with_suffix(f".{time.monotonic_ns()}"))

    def _path(self, name):
        return self._folder / f"{name}.jsonl"


def test_each_line_is_sent_once_and_in_order_whatever_is_killed(app, talks):
    writers = Writers(talks, 20)
    writers.write_for(0.5)
    for _ in range(4):
        follower = start(app, talks)
        writers.write_for(0.7)
        follower.kill()
        writers.write_for(0.2)
    follower = start(app, talks)
    writers.write_for(0.5)
    writers.finish()
    wait_until_sent(app, sum(map(len, writers.lines.values())))
    assert follower.terminate() == 0
    assert sent(app) == {name: lines for name, lines in writers.lines.items() if lines}


def test_broker_that_is_killed_and_comes_back_has_each_line_once(own_jvm_broker, talks, tmp_path):
    with deployments(own_jvm_broker, tmp_path) as deploy:
        app = deploy(partitions=PARTITIONS)
        writers = Writers(talks, 5)
        follower = start(app, talks)
        writers.write_for(0.7)
        own_jvm_broker.kill()
        writers.write_for(0.7)
        own_jvm_broker.start()
        writers.finish()
        wait_until_sent(app, sum(map(len, writers.lines.values())))
        assert follower.terminate() == 0
        assert sent(app) == {name: lines for name, lines in writers.lines.items() if lines}


def test_older_of_two_followers_with_a_name_stops_and_the_newer_goes_on(app, talks):
    append(talks / "a.jsonl", b"1\n")
    older = start(app, talks)
    wait_until_sent(app, 1)
    newer = start(app, talks)
    older.is_wanted = False
    append(talks / "a.jsonl", b"2\n")
    assert older.exit_code(within_s=30) == 70
    assert "another one runs under the name 'one'" in older.output()
    append(talks / "a.jsonl", b"3\n")
    wait_until_sent(app, 3)
    newer.is_wanted = False
    newer.signal(signal.SIGINT)
    assert newer.exit_code(within_s=20) == 0
    assert sent(app) == {"a": [b"1", b"2", b"3"]}


def test_line_larger_than_the_topic_takes_stops_it_behind_the_line_before(app, talks):
    append(talks / "a.jsonl", b"before\n" + b"x" * 21_000_000 + b"\nafter\n")
    append(talks / "b.jsonl", b"other\n")
    follower = start(app, talks, compression="none")
    assert follower.exit_code(within_s=40) == 1
    assert "a.jsonl:2: a message of 21,000,001 bytes" in follower.output()
    assert sent(app) == {"a": [b"before"], "b": [b"other"]}
