"""What a worker must not start with: it ends, says what to do, and has written nothing."""

import asyncio
import subprocess
import sys
import time

import pytest
from aiokafka.errors import TopicAlreadyExistsError

from processor.demo.local_broker import free_ports
from processor.demo.transcripts import transcripts
from tests.e2e import asking
from tests.e2e.producing import Line, lines_of
from tests.e2e.workers import ROOT


@pytest.fixture
def stopped(deploy):
    """An app that has made chunks, holds open records, and does not run."""
    app = deploy(partitions=2, idle_s=0)
    app.send(lines_of(transcripts(400, 21, sessions=6, max_line_bytes=8_000)))
    worker = app.start()
    app.judged()
    assert worker.terminate() == 0
    return app


def refused(app, **settings):
    """Start a worker that must not run; return its exit code and what it said last."""
    before = set(app.read(app.chunks))
    worker = app.start(**settings)
    code = worker.exit_code(within_s=40)
    assert set(app.read(app.chunks)) == before
    return code, worker.output().splitlines()[-1]


def test_topic_created_again_with_fewer_records_is_noticed(stopped):
    asyncio.run(recreate(stopped))
    stopped.send([Line(b"s1", b'"new"')])
    code, said = refused(stopped)
    assert code == 70
    assert "deleted and created again" in said
    assert "processor state reset" in said


def test_topic_created_again_with_more_records_is_noticed(stopped):
    asyncio.run(recreate(stopped))
    stopped.send(lines_of(transcripts(1_000, 22, sessions=6, max_line_bytes=8_000)))
    code, said = refused(stopped)
    assert code == 70
    assert "deleted and created again" in said
    assert "processor state reset" in said


async def recreate(app):
    await asking.delete_topic(app.bootstrap, app.records)
    # A deleted topic takes a moment to go.
    async with asyncio.timeout(20):
        while True:
            try:
                await asking.create_topic(app.bootstrap, app.records, partitions=app.partitions)
            except TopicAlreadyExistsError:
                await asyncio.sleep(0.2)
            else:
                return


def test_offsets_moved_by_a_person_are_noticed(stopped):
    offsets = asyncio.run(stopped.committed())
    moved = {at: offset - 5 for at, offset in offsets.items()}
    asyncio.run(asking.move_offsets(stopped.bootstrap, stopped.topics.app_id, moved))
    code, said = refused(stopped)
    assert code == 70
    assert "someone has reset the group" in said
    assert "processor state" in said


def test_records_that_retention_ate_before_they_were_in_a_chunk_are_noticed(stopped):
    offsets = asyncio.run(stopped.committed())
    asyncio.run(asking.delete_before(stopped.bootstrap, offsets))
    code, said = refused(stopped)
    assert code == 70
    assert "retention has eaten records" in said
    assert "processor state reset" in said


def test_changelog_that_lacks_its_beginning_is_noticed(stopped):
    """Its policy was wrong for a while, and sessions would start again at t=1."""
    changelog = stopped.topics.changelog_topic
    at = asking.partitions_named(changelog, stopped.partitions)
    asyncio.run(asking.set_cleanup(stopped.bootstrap, changelog, "delete"))
    asyncio.run(asking.delete_before(stopped.bootstrap, dict.fromkeys(at, 1)))
    asyncio.run(asking.set_cleanup(stopped.bootstrap, changelog, "compact"))
    code, said = refused(stopped)
    assert code == 70
    assert "the changelog starts at offset 1" in said
    assert "`processor state rebuild`" in said


def test_chunks_that_no_state_tells_of_are_noticed(stopped):
    """Symptom: a new name, or a changelog lost with its group, and t began again at 1."""
    code, said = refused(stopped, app_id=f"{stopped.topics.app_id}-new")
    assert code == 70
    assert "there are chunks, but neither" in said
    assert "`processor state rebuild`" in said


def test_second_app_of_the_same_name_is_noticed(stopped, deploy):
    """Symptom: two topics' partitions wrote their entries over each other's."""
    other = deploy(partitions=2)
    code, said = refused(
        stopped, records_topic=other.records, chunks_topic=other.chunks, max_tokens=4_000
    )
    assert code == 78
    assert f"is that of topic {stopped.records}" in said
    assert "another PROCESSOR_APP_ID" in said


def test_more_partitions_of_records_alone_are_noticed(stopped):
    asyncio.run(asking.grow_topic(stopped.bootstrap, stopped.records, partitions=3))
    code, _ = refused(stopped)
    assert code == 78
    said = stopped.workers[-1].output()
    assert f"{stopped.chunks} has 2 partitions, {stopped.records} has 3" in said
    assert "sessions have moved" in said


def test_more_partitions_of_all_topics_are_noticed(stopped):
    topics = stopped.topics
    for topic in (
        topics.records_topic,
        topics.chunks_topic,
        topics.dead_letter_topic,
        topics.changelog_topic,
    ):
        asyncio.run(asking.grow_topic(stopped.bootstrap, topic, partitions=3))
    code, said = refused(stopped)
    assert code == 78
    assert "the topic had 2 partitions and now has 3" in said


def test_changed_policy_is_noticed_and_can_be_accepted(stopped):
    code, said = refused(stopped, max_tokens=4_000)
    assert code == 78
    assert "max_tokens 5000 -> 4000" in said
    assert "PROCESSOR_ACCEPT_POLICY_CHANGE" in said
    stopped.start(max_tokens=4_000, accept_policy_change="true")
    stopped.send(lines_of(transcripts(400, 23, sessions=6, max_line_bytes=8_000)))
    assert stopped.judged().records == 800


def test_session_timeout_that_the_broker_refuses_is_named(deploy):
    """Symptom: the worker ran on without ever joining its group."""
    code, said = refused(deploy(partitions=1), session_timeout_s=0.5)
    assert code == 78
    assert "PROCESSOR_SESSION_TIMEOUT_S=0.5" in said


#: A worker whose broker answers about the topics, and then not any more.
LEFT_ALONE = """
import sys, types
import processor.app, processor.cli

async def answered(*_):
    return types.SimpleNamespace(retention_ms=-1)

app = processor.app
app.check_rights = app.create_topics = app.check_topics = answered
sys.exit(processor.cli.main())
"""


def worker_alone(*code, **environment):
    return subprocess.run(  # noqa: S603 - our own code
        [sys.executable, *(code or ("-m", "processor")), "worker"],
        env={"PYTHONPATH": str(ROOT)} | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_broker_that_is_not_there_ends_the_worker_soon():
    [port] = free_ports(1)
    started_at = time.monotonic()
    done = worker_alone(KAFKA_BOOTSTRAP_SERVERS=f"127.0.0.1:{port}", PROCESSOR_APP_ID="a")
    assert done.returncode == 69, done.stderr
    assert f"no answer from 127.0.0.1:{port}" in done.stderr
    assert "KAFKA_BOOTSTRAP_SERVERS" in done.stderr
    assert time.monotonic() - started_at < 15


def test_broker_that_goes_while_the_worker_starts_ends_it_as_one_that_is_not_there():
    """Symptom: exit 1 and a traceback of Faust's. Cause: its clients' errors were not ours."""
    [port] = free_ports(1)
    environment = {"KAFKA_BOOTSTRAP_SERVERS": f"127.0.0.1:{port}", "PROCESSOR_APP_ID": "a"}
    done = worker_alone("-c", LEFT_ALONE, **environment)
    assert done.returncode == 69, done.stderr
    assert "Traceback" not in done.stderr
    assert f"no answer from 127.0.0.1:{port}" in done.stderr.splitlines()[-1]


def test_app_without_a_name_is_refused():
    done = worker_alone()
    assert done.returncode == 78, done.stderr
    assert "PROCESSOR_APP_ID" in done.stderr
