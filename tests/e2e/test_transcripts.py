"""Transcripts of every tool: followed, chunked by real tokens, and proven, with kills all along.

Where PROCESSOR_TEST_CORPUS names a folder of transcripts, those go the same way.
"""

import os
import random
import time
from itertools import islice
from pathlib import Path

import pytest

from processor.demo.transcripts import session_lines
from tests.e2e.chunk_reading import read_chunk
from tests.e2e.log_reading import read_log
from tests.e2e.producing import Line
from tests.unit.counters.references import qwen_reference

CORPUS = os.environ.get("PROCESSOR_TEST_CORPUS")
REAL = {"token_counter": "qwen2.5"}
FILES = 100
LINES = 40
ROUNDS = 4
FOLLOW = ("-m", "processor", "produce", "--follow", "talks", "--name", "one")


@pytest.fixture
def app(deploy):
    return deploy(**REAL)


def made():
    """Name and lines of each transcript."""
    for number in range(FILES):
        shape = ("claude", "codex", "pi")[number % 3]
        name = f"{number:08x}-0000-4000-8000-{number:012x}"
        yield name, list(islice(session_lines(name, 5, shape=shape), LINES))


def corpus():
    for file in sorted(Path(CORPUS).rglob("*.jsonl")):
        yield file.stem, file.read_bytes().removesuffix(b"\n").split(b"\n")


def write(folder, talks):
    """Write all of them side by side, in pieces that end anywhere; yields after each round."""
    rng = random.Random(3)  # noqa: S311 - the same each time
    whole = {name: b"".join(line + b"\n" for line in lines) for name, lines in talks.items()}
    for left in range(ROUNDS, 0, -1):
        for name, rest in whole.items():
            size = len(rest) if left == 1 else rng.randrange(2 * len(rest) // left + 1)
            with (folder / f"{name}.jsonl").open("ab") as file:
                file.write(rest[:size])
            whole[name] = rest[size:]
        yield


def through(app, talks):
    """Send transcripts as they grow, killing the follower and a worker in each round."""
    folder = app.folder / "talks"
    folder.mkdir()
    follower, worker = app.start(*FOLLOW), app.start()
    for _ in write(folder, talks):
        time.sleep(2)
        follower.kill()
        follower = app.start(*FOLLOW)
        app.kill(worker)
        worker = app.start()

    async def are_sent():
        log = await read_log(app.bootstrap, app.records, settled=False, patience_s=30)
        return len(log) >= sum(map(len, talks.values()))

    app.wait("all lines sent", are_sent, within_s=60)
    app.send([Line(key, None) for key in {it.key for it in app.read(app.records)}])
    app.wait_until_caught_up(within_s=90)
    assert follower.terminate() == 0
    assert worker.terminate() == 0


def chunked(app):
    """Values by session, of chunks that are within budget or say that they are not."""
    count = qwen_reference()
    found = {}
    for message in app.read(app.chunks):
        chunk = read_chunk(message.value)
        values = [it.value for it in chunk.records]
        found.setdefault(chunk.session, []).extend(values)
        tokens = sum(max(1, count(it.decode("utf-8", "replace"))) for it in values)
        assert chunk.over_budget == (tokens > chunk.max_tokens == 5000)
        assert not chunk.over_budget or len(values) == 1
    return found


def verified(app):
    proof = app.run("verify", "--recompute", **REAL)
    assert proof.returncode == 0, proof.stdout + proof.stderr


def test_a_hundred_growing_transcripts_come_through_kills_whole_and_within_budget(app):
    talks = dict(made())
    through(app, talks)
    assert chunked(app) == talks
    verified(app)


@pytest.mark.skipif(CORPUS is None, reason="PROCESSOR_TEST_CORPUS names no folder of *.jsonl")
def test_corpus_comes_through_kills_whole_and_within_budget(app):
    talks = dict(corpus())
    through(app, talks)
    lines = [line for talk in talks.values() for line in talk]
    assert sorted(value for values in chunked(app).values() for value in values) == sorted(lines)
    verified(app)
