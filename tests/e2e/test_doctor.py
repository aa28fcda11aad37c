"""``processor doctor`` on real brokers: what is right is left alone, what is not is named."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer

from processor.clock import SystemClock
from processor.demo.kafka_jvm import start_jvm
from processor.doctor.examine import examine
from processor.doctor.finding import Level
from processor.kafka.flow import chunking
from processor.kafka.partitioner import partitioner
from processor.kafka.rights import Right, flow_rights
from processor.kafka.topics import create_route_topics, create_topics
from processor.settings import Settings
from tests.e2e import asking, producing
from tests.e2e.producing import Line
from tests.e2e.secure_app import SecureApp

PARTITIONS = 2
LINES = [Line(f"s{number % 20}".encode(), b"{}") for number in range(200)]
SAMPLE = 1000


def examined(settings):
    return asyncio.run(examine(settings, SAMPLE, SystemClock()))


def examined_until(settings, is_so):
    """Examine until the findings are as expected; brokers learn of changes one after the other."""
    for _ in range(20):
        if is_so(found := examined(settings)):
            break
    return found


def of_level(findings, level):
    return {it.where: it for it in findings if it.level is level}


def elsewhere(key):
    return 1 - partitioner(PARTITIONS)(key)


def test_deployment_that_runs_is_right_and_the_verb_says_so(deploy):
    app = deploy(partitions=PARTITIONS)
    worker = app.start()
    app.send(LINES)
    app.wait_until_caught_up()
    done = app.run("doctor", "--output", "json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["ok"] is True
    found = {it["where"]: it for it in report["findings"] if it["level"] != "ok"}
    # What the brokers of tests have in common: each is alone.
    assert all(it["level"] == "note" for it in found.values()), found
    said = [it["what"] for it in report["findings"]]
    assert "1 members, stable" in said
    assert "20 keys of 200 records are where they belong" in said
    assert worker.terminate() == 0
    assert "ok: " in app.run("doctor", "--sample", "0").stdout


def sends(*lines):
    return lambda settings: asyncio.to_thread(
        producing.send, settings.bootstrap_servers, settings.records_topic, lines
    )


def configures(field, **configs):
    return lambda settings: asking.set_configs(
        settings.bootstrap_servers, getattr(settings, field), **configs
    )


def grows(field):
    return lambda settings: asking.grow_topic(
        settings.bootstrap_servers, getattr(settings, field), partitions=PARTITIONS + 1
    )


async def loses_its_state(settings):
    [place, _] = asking.partitions_named(settings.records_topic, PARTITIONS)
    await asking.move_offsets(settings.bootstrap_servers, settings.app_id, {place: 0})


async def loses_records(settings):
    await sends(*(Line(b"s", b"{}", 0) for _ in range(9)))(settings)
    await loses_its_state(settings)
    [place, _] = asking.partitions_named(settings.records_topic, PARTITIONS)
    await asking.delete_before(settings.bootstrap_servers, {place: 5})


BROKEN = {
    "dead letters with the broker's time": (
        configures("dead_letter_topic", message_timestamp_type="LogAppendTime"),
        "{dead_letter_topic}",
        "message.timestamp.type=CreateTime",
    ),
    "changelog that is not compacted": (
        configures("changelog_topic", cleanup_policy="delete"),
        "{changelog_topic}",
        "cleanup.policy=compact",
    ),
    "input that is compacted": (
        configures("records_topic", cleanup_policy="compact"),
        "{records_topic}",
        "cleanup.policy=delete",
    ),
    "another number of partitions": (
        grows("chunks_topic"),
        "{chunks_topic}",
        "--topic {chunks_topic} --delete",
    ),
    "chunks that may not be large": (
        configures("chunks_topic", max_message_bytes=1000),
        "{chunks_topic}",
        "max.message.bytes=",
    ),
    "short retention": (
        configures("records_topic", retention_ms=60_000, message_timestamp_type="LogAppendTime"),
        "{records_topic}",
        "retention.ms=604800000",
    ),
    "key on another partition": (
        sends(Line(b"s", b"{}", elsewhere(b"s"))),
        "{records_topic}",
        "partitioner=murmur2_random",
    ),
    "session on two partitions": (
        sends(Line(b"s", b"{}", 0), Line(b"s", b"{}", 1)),
        "{records_topic}",
        "",
    ),
    "lost state": (loses_its_state, "{changelog_topic}[0]", "processor state rebuild"),
    "lost records": (loses_records, "{records_topic}[0]", ""),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_promise_is_named_with_its_remedy(settings, what):
    spoil, where, remedy = BROKEN[what]
    asyncio.run(spoil(settings))
    names = settings.model_dump() | {"changelog_topic": settings.changelog_topic}
    where = where.format_map(names)
    findings = examined_until(settings, lambda found: where in of_level(found, Level.BREAKS))
    found = of_level(findings, Level.BREAKS)
    assert where in found, findings
    assert remedy.format_map(names) in found[where].remedy


def test_broken_promise_fails_the_verb(deploy):
    app = deploy(partitions=PARTITIONS)
    asyncio.run(asking.set_cleanup(app.bootstrap, app.topics.changelog_topic, "delete"))
    examined_until(app.topics, lambda found: of_level(found, Level.BREAKS))
    done = app.run("doctor")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith(f"breaks  {app.topics.changelog_topic}")
    assert "\n          kafka-configs.sh" in done.stdout


def test_time_of_producers_and_what_is_ahead_of_it_are_warned_of(settings):
    asyncio.run(configures("records_topic", message_timestamp_type="CreateTime")(settings))
    examined_until(settings, lambda found: "CreateTime" in str(found))
    ahead_ms = SystemClock().now_ms() + 60_000
    line = Line(b"s", b"{}", 1 - elsewhere(b"s"), timestamp_ms=ahead_ms)
    asyncio.run(sends(line, line._replace(timestamp_ms=ahead_ms - 30_000))(settings))
    said = "\n".join(it.what for it in examined(settings) if it.level is Level.WARN)
    for part in ("CreateTime", "ahead of our clock", "step back by up to 30.0 s", "2 records wait"):
        assert part in said, said


@asynccontextmanager
async def stranger(settings):
    consumer = AIOKafkaConsumer(
        settings.records_topic,
        bootstrap_servers=settings.bootstrap_servers,
        group_id=settings.app_id,
        client_id="kcat",
    )
    await consumer.start()
    try:
        yield
    finally:
        await consumer.stop()


def test_stranger_in_the_group_is_named(settings):
    async def look():
        async with stranger(settings):
            return await examine(settings, 0, SystemClock())

    found = of_level(asyncio.run(look()), Level.BREAKS)
    assert "kcat at " in found[f"group {settings.app_id}"].what


def test_topics_of_a_router_are_looked_at_once_they_are_there(settings):
    telemetry = f"{settings.app_id}.telemetry"
    routed = settings.model_copy(update={"telemetry_topic": telemetry})
    asyncio.run(create_route_topics(routed, partitions=1, replication=1))
    assert of_level(examined(routed), Level.BREAKS) == {}
    asyncio.run(asking.set_cleanup(routed.bootstrap_servers, telemetry, "compact"))
    found = examined_until(routed, lambda found: telemetry in of_level(found, Level.BREAKS))
    assert telemetry in of_level(found, Level.BREAKS)


@pytest.mark.usefixtures("jvm_alone")
def test_broker_on_which_no_transaction_can_be_is_told():
    """The usual trap: a single broker with the defaults of three."""
    broker = start_jvm(
        overrides={
            "transaction.max.timeout.ms": "20000",
            "transaction.state.log.replication.factor": "3",
            "group.max.session.timeout.ms": "5000",
            "auto.create.topics.enable": "true",
        }
    )
    try:
        settings = Settings(bootstrap_servers=broker.bootstrap, app_id="app")
        asyncio.run(create_topics(settings, partitions=1))
        found = examined(settings)
    finally:
        broker.stop()
    broken = [
        (it.where, it.what.partition(": ")[0].partition(" can't")[0])
        for it in found
        if it.level is Level.BREAKS
    ]
    assert broken == [
        ("broker 1", "transaction.max.timeout.ms=20000"),
        ("broker 1", "group.max.session.timeout.ms=5000"),
        ("__transaction_state", "isn't there yet, and transaction.state.log.replication.factor=3"),
    ]
    assert "auto.create.topics.enable=true" in found[3].what


def test_rights_of_a_worker_are_enough_and_one_that_is_missing_is_named(secure_kafka, tmp_path):
    app = SecureApp(secure_kafka, tmp_path, partitions=1)
    app.create_topics()
    rights = flow_rights(chunking(app.topics))
    app.grant(*rights)
    app.by("SCRAM-SHA-512")
    code, said = app.says("doctor")
    assert code == 0, said
    assert "--operation DescribeConfigs --cluster" in said
    app.grant(Right("DescribeConfigs", "cluster", "kafka-cluster"))
    assert "not looked at" not in app.says("doctor")[1]
    for right in (rights[1], rights[-2]):
        app.revoke(right)
        code, said = app.says("doctor")
        assert code == 1, said
        assert f"lacks {right}" in said
        assert f"--operation {right.operation} --{right.resource} {right.name}" in said
        app.grant(right)
    app.stop()
