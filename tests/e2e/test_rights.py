"""The rights of a router and of verbs that write, as documented: enough, and each needed."""

import asyncio
import re
import uuid

import pytest

from processor.core.errors import ConfigError
from processor.kafka.flow import chunking, routing
from processor.kafka.granted import check_rights
from processor.kafka.rights import Right, flow_rights
from processor.kafka.topics import create_route_topics
from processor.settings_loading import load_settings
from tests.e2e import producing
from tests.e2e.producing import Line
from tests.e2e.routing import ROUTE, telemetry_of, wait_until_routed
from tests.e2e.secure_app import SecureApp


def topic_rights(topic, *operations):
    return [Right(it, "topic", topic) for it in (*operations, "DescribeConfigs")]


@pytest.fixture
def app(secure_kafka, tmp_path):
    """An app, and a user who has no right in it."""
    telemetry = f"telemetry-{uuid.uuid4().hex}"
    made = SecureApp(secure_kafka, tmp_path, partitions=1, telemetry_topic=telemetry)
    made.create_topics()
    yield made.by("SCRAM-SHA-512")
    made.stop()


@pytest.fixture
def router(app):
    """The same app with a router's topics and rights."""
    topics = app.topics.model_copy(update={"telemetry_topic": telemetry_of(app)})
    asyncio.run(create_route_topics(topics, partitions=1, replication=1))
    app.rights = flow_rights(routing(topics))
    app.grant(*app.rights)
    return app


def test_router_runs_with_its_rights_alone_and_each_is_named_when_it_is_missing(router):
    producing.send(router.bootstrap, telemetry_of(router), [Line(b"s1", b'{"n": 1}')])
    running = router.start(*ROUTE)
    wait_until_routed(router)
    assert running.terminate() == 0
    assert len(router.read(router.records)) == 1
    settings = load_settings(environ=router.environment())
    for right in router.rights:
        router.revoke(right)
        with pytest.raises(ConfigError, match=re.escape(f"User:worker lacks {right};")):
            asyncio.run(check_rights(settings, router.rights))
        router.grant(right)


@pytest.mark.parametrize("lost", ["Write on topic", "Read on group"])
def test_right_that_is_taken_away_ends_a_running_router(router, lost):
    producing.send(router.bootstrap, telemetry_of(router), [Line(b"s1", b'{"n": 1}')])
    running = router.start(*ROUTE)
    wait_until_routed(router)
    right = next(it for it in router.rights if str(it).startswith(lost))
    router.revoke(right)
    producing.send(router.bootstrap, telemetry_of(router), [Line(b"s1", b'{"n": 2}')])
    assert running.exit_code(within_s=30) == 78
    assert f"User:worker lacks {right};" in running.output()


def test_transactional_id_of_a_router_that_may_only_be_seen_is_named(router):
    right = router.rights[-1]
    router.revoke(right)
    router.grant(right._replace(operation="Describe"))
    code, output = router.says("route")
    assert code == 78, output
    assert f"lacks {right};" in output


def test_follower_needs_the_documented_rights_and_names_each_that_is_missing(app, tmp_path):
    talks = tmp_path / "talks"
    talks.mkdir()
    (talks / "s1.jsonl").write_text("{}\n")
    positions = app.topics.positions_topic
    rights = [
        *topic_rights(app.records, "Write"),
        *topic_rights(positions, "Read", "Write"),
        Right("Write", "transactional-id", f"{positions}-one"),
    ]
    app.grant(*rights, Right("Create", "topic", positions))
    follow = ("produce", "--follow", str(talks), "--name", "one")
    follower = app.start("-m", "processor", *follow)
    app.wait_for_output(follower, "following")
    assert follower.terminate() == 0
    assert_each_is_needed(app, rights, follow)


def test_redrive_needs_the_documented_rights_and_names_each_that_is_missing(app):
    positions, letters = app.topics.positions_topic, app.topics.dead_letter_topic
    rights = [
        *topic_rights(letters, "Read"),
        *topic_rights(app.records, "Write"),
        *topic_rights(positions, "Read", "Write"),
        Right("Write", "transactional-id", f"{positions}-redrive-{letters}"),
    ]
    app.grant(*rights, Right("Create", "topic", positions))
    redrive = ("dead-letters", "redrive", "--session", "s1")
    code, output = app.says(*redrive)
    assert code == 0, output
    assert_each_is_needed(app, rights, redrive)


def test_dead_letters_are_listed_with_the_documented_rights(app):
    rights = [
        *topic_rights(app.topics.dead_letter_topic, "Read"),
        *topic_rights(app.topics.positions_topic, "Read"),
    ]
    app.grant(*rights)
    code, output = app.says("dead-letters", "list")
    assert code == 0, output
    assert_each_is_needed(app, rights[:2], ("dead-letters", "list"))


def assert_each_is_needed(app, rights, verb):
    for right in rights:
        app.revoke(right)
        code, output = app.says(*verb)
        assert code == 78, f"{right}: {output}"
        assert f"User:worker lacks {right};" in output
        app.grant(right)


def test_rebuild_needs_a_workers_rights_and_to_read_dead_letters(app):
    """It said that it could not read the records topic, and not which right was missing."""
    app.grant(*flow_rights(chunking(app.topics)))
    read = Right("Read", "topic", app.topics.dead_letter_topic)
    rebuild = ("state", "rebuild", "--all")
    code, output = app.says(*rebuild)
    assert code == 78, output
    assert f"User:worker lacks {read};" in output
    app.grant(read)
    code, output = app.says(*rebuild)
    assert code == 0, output
