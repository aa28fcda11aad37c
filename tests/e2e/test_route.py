"""Telemetry to records of sessions, exactly once, and on to chunks."""

import asyncio
import json
import random
import uuid
from collections import defaultdict
from functools import partial

import pytest
from aiokafka.errors import TopicAlreadyExistsError
from aiokafka.partitioner import DefaultPartitioner

from tests.e2e import asking, producing
from tests.e2e.probing import Probed
from tests.e2e.producing import Line
from tests.e2e.routing import ROUTE, telemetry_of, wait_until_routed
from tests.unit.formats.telemetry import as_protobuf, call, spans_of

TELEMETRY_PARTITIONS, RECORDS_PARTITIONS = 4, 3


@pytest.fixture
def app(deploy):
    """An app whose telemetry has another number of partitions than its records."""
    made = deploy(partitions=RECORDS_PARTITIONS, telemetry_topic=f"telemetry-{uuid.uuid4().hex}")
    asyncio.run(create(made))
    return made


async def create(app):
    topic = telemetry_of(app)
    await asking.create_topic(app.bootstrap, topic, partitions=TELEMETRY_PARTITIONS)


def transcripts_of_pi(files, lines, seed):
    """Return messages keyed by file, whose session its first line alone names, interleaved."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    left = {}
    for number in range(files):
        header = {"type": "session", "version": 3, "id": f"session-{number}", "cwd": "/"}
        rest = [
            {"type": "message", "id": f"{number}-{n}", "text": "x" * chance.randrange(2_000)}
            for n in range(lines)
        ]
        left[f"/logs/{number}.jsonl"] = [json.dumps(it).encode() for it in (header, *rest)]
    sent = []
    while left:
        file = chance.choice(list(left))
        sent.append(Line(file.encode(), left[file].pop(0)))
        if not left[file]:
            del left[file]
            if chance.random() < 0.5:
                sent.append(Line(file.encode(), None))
    return sent


def session_of(line):
    return line.key.replace(b"/logs/", b"session-").removesuffix(b".jsonl")


@pytest.mark.needs("eviction")
def test_routers_that_are_killed_and_rebalanced_give_each_record_once_in_order(app):
    lines = transcripts_of_pi(files=50, lines=160, seed=1)
    nameless = [Line(None, b"no session %d" % n, partition=n % 4) for n in range(20)]
    first, second = app.start(*ROUTE), app.start(*ROUTE)
    flow = producing.Flow(app.bootstrap, telemetry_of(app), [*nameless, *lines], per_s=1_000)
    with flow:
        for share in (0.2, 0.4, 0.6, 0.8):
            flow.wait_for(share)
            app.kill(first)
            first, second = second, app.start(*ROUTE)
    wait_until_routed(app)
    assert second.terminate() == 0
    assert first.terminate() == 0
    expected, got = defaultdict(list), defaultdict(list)
    for line in lines:
        expected[session_of(line)].append(line.value)
    partition_of, partitions = DefaultPartitioner(), list(range(RECORDS_PARTITIONS))
    for message in app.read(app.records):
        got[message.key].append(message.value)
        assert message.partition == partition_of(message.key, partitions, partitions)
    assert got == expected
    letters = [message.value for message in app.read(app.topics.dead_letter_topic)]
    assert sorted(letters) == sorted(line.value for line in nameless)


@pytest.mark.needs("eviction")
def test_conversations_in_exports_are_told_once_though_routers_die_and_are_chunked(app):
    """Each call repeats its conversation; one more message of each is new."""
    calls, sessions = 40, 5
    exports = [
        Line(
            None,
            as_protobuf(spans_of(*(call(told(n), session=f"s{s}") for s in range(sessions)))),
            0,
        )
        for n in range(calls)
    ]
    router = app.start(*ROUTE)
    app.start()
    with producing.Flow(app.bootstrap, telemetry_of(app), exports, per_s=10) as flow:
        for share in (0.3, 0.6):
            flow.wait_for(share)
            app.kill(router)
            router = app.start(*ROUTE)
    wait_until_routed(app)
    verdict = app.judged()
    assert (verdict.records, verdict.sessions) == (calls * sessions, sessions)
    assert verdict.dead_letters == 0


def told(count):
    return [f"message {n} {'x' * 100}" for n in range(count + 1)]


def test_message_whose_record_is_refused_as_too_large_is_a_dead_letter_and_the_rest_goes_on(app):
    """Its producer compressed it below the limit of the topic, which this router does not."""
    app.start(*ROUTE, compression="none")
    giant = Line(b"s1", b"x" * 1_500_000)
    sent = [Line(b"s1", b"before"), giant, Line(b"s1", b"after"), Line(b"s2", b"other")]

    async def send():
        async with producing.producer(app.bootstrap, compression_type="gzip") as client:
            for line in sent:
                await client.send_and_wait(telemetry_of(app), line.value, line.key, 0)

    asyncio.run(send())
    wait_until_routed(app)
    routed = [(message.key, message.value) for message in app.read(app.records)]
    assert sorted(routed) == [(b"s1", b"after"), (b"s1", b"before"), (b"s2", b"other")]
    (letter,) = app.read(app.topics.dead_letter_topic)
    assert letter.value == giant.value
    assert dict(letter.headers)["processor-reason"] == b"too-large"


def test_router_is_ready_and_tells_what_it_routed_and_how_far_it_is(app):
    sent = transcripts_of_pi(4, 20, 5)
    producing.send(app.bootstrap, telemetry_of(app), sent)
    router = Probed(app, partial(app.start, *ROUTE))
    router.wait_until_ready()
    wait_until_routed(app)

    async def is_counted():
        metrics = router.metrics()
        written = sum(it.value is not None for it in sent)
        is_read = metrics["processor_consumer_lag_records"] == 0
        return is_read and metrics["processor_routed_records_total"] == written

    app.wait("counts of what is routed", is_counted, within_s=10)
    assert router.metrics()["processor_assigned_partitions"] == TELEMETRY_PARTITIONS
    assert router.status()["topics"] == {"input": telemetry_of(app), "output": app.records}


def test_telemetry_created_again_is_refused_with_what_to_do(app):
    producing.send(app.bootstrap, telemetry_of(app), transcripts_of_pi(4, 20, 3))
    router = app.start(*ROUTE)
    wait_until_routed(app)
    assert router.terminate() == 0
    before = set(app.read(app.records))
    asyncio.run(recreate(app))
    refused = app.start(*ROUTE)
    assert refused.exit_code(within_s=40) == 70
    said = refused.output().splitlines()[-1]
    assert "created again" in said
    assert f"kafka-consumer-groups.sh --delete --group {app.topics.app_id}-router" in said
    assert set(app.read(app.records)) == before


async def recreate(app):
    await asking.delete_topic(app.bootstrap, telemetry_of(app))
    # A deleted topic takes a moment to go.
    async with asyncio.timeout(20):
        while True:
            try:
                await create(app)
            except TopicAlreadyExistsError:
                await asyncio.sleep(0.2)
            else:
                return


def test_topics_that_are_missing_are_created_telemetry_with_one_partition(app):
    asyncio.run(asking.delete_topic(app.bootstrap, telemetry_of(app)))
    made = app.run("topics", "create", "--telemetry", "--partitions", "3")
    assert made.returncode == 0, made.stderr
    assert f"created {app.topics.app_id}-routes-changelog" in made.stdout
    checked = app.run("topics", "check", "--telemetry", "--output", "json")
    assert json.loads(checked.stdout) == {"ok": True, "partitions": 1}
