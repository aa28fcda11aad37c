"""The worker while things break: nothing may be lost, repeated or reordered, whatever dies."""

import asyncio
import json
import random
import time

import pytest

from processor.demo.transcripts import transcripts
from tests.e2e import asking
from tests.e2e.producing import Line, ends_of, lines_of
from tests.e2e.workers import Deployment, deployments


def some_lines(count, seed):
    return lines_of(transcripts(count, seed, sessions=80, max_line_bytes=30_000))


def test_worker_killed_again_and_again_loses_nothing(deploy):
    app = deploy()
    lines = some_lines(15_000, 11)
    worker = app.start()
    app.wait_for_members(1)
    with app.flow(lines, per_s=1_500) as flow:
        for share in (0.1, 0.3, 0.6):
            flow.wait_for(share)
            app.wait_for_chunks(1_000 * share)
            app.kill(worker)
            worker = app.start()
    app.send(ends_of(lines))
    verdict = app.judged()
    assert (verdict.records, verdict.open) == (15_000, 0)


def test_worker_killed_in_the_middle_of_a_backlog_loses_nothing(deploy):
    app = deploy(commit_interval_s=0.02)
    app.send(some_lines(20_000, 12), producers=2)
    worker = app.start()
    app.wait_for_chunks(1)
    app.kill(worker)
    app.start()
    assert app.judged().records == 20_000


@pytest.mark.needs("eviction")
def test_other_worker_takes_over_from_one_that_is_killed(deploy):
    app = deploy()
    with app.flow(some_lines(12_000, 13), per_s=1_500) as flow:
        first, _ = app.start(), app.start()
        app.wait_for_members(2)
        flow.wait_for(0.5)
        app.kill(first)
        app.wait_for_members(1)
    assert app.judged().records == 12_000


@pytest.mark.needs("eviction")
def test_zombie_that_comes_back_writes_nothing_of_what_it_held(deploy):
    app = deploy()
    # A long interval: when it freezes, chunks are staged that the others make anew.
    zombie = app.start(commit_interval_s=1)
    app.wait_for_members(1)
    with app.flow(some_lines(18_000, 14), per_s=1_500) as flow:
        flow.wait_for(0.1)
        zombie.freeze()
        app.start()
        app.wait_for_output(app.workers[1], "partition is ready")
        flow.wait_for(0.5)
        zombie.thaw()
        flow.wait_for(0.7)
        app.wait_for_members(2)
    assert app.judged().records == 18_000


def test_broker_killed_while_records_flow_is_outlived(own_jvm_broker, tmp_path):
    with deployments(own_jvm_broker, tmp_path) as deploy:
        app = deploy()
        worker = app.start()
        app.wait_for_members(1)
        with app.flow(some_lines(6_000, 15), per_s=1_000) as flow:
            flow.wait_for(0.4)
            own_jvm_broker.kill()
            own_jvm_broker.start()
        assert app.judged(within_s=90).records == 6_000
        assert worker.is_running()
        assert worker.terminate() == 0


def test_frozen_broker_is_outlived(own_jvm_broker, tmp_path):
    """Longer than a commit may take, and than the group waits for a member."""
    with deployments(own_jvm_broker, tmp_path) as deploy:
        app = deploy()
        worker = app.start()
        app.wait_for_members(1)
        with app.flow(some_lines(6_000, 16), per_s=1_000) as flow:
            flow.wait_for(0.4)
            own_jvm_broker.freeze()
            time.sleep(20)
            own_jvm_broker.thaw()
        assert app.judged(within_s=90).records == 6_000
        assert worker.terminate() == 0


def noise(size, seed):
    return random.Random(seed).randbytes(size)  # noqa: S311 - incompressible, nothing secret


@pytest.fixture
def narrow(broker, tmp_path):
    """An app whose chunks and dead letters may hardly be larger than its records."""
    app = Deployment(broker, tmp_path, partitions=1, idle_s=0, max_chunk_bytes=60_000)
    limits = {app.records: 100_000, app.chunks: 100_001, app.topics.dead_letter_topic: 100_000}
    for topic, limit in limits.items():
        asyncio.run(
            asking.create_topic(app.bootstrap, topic, partitions=1, max_message_bytes=limit)
        )
    app.create_topics()
    yield app
    app.stop()


def test_record_that_no_chunk_can_carry_is_told_and_the_partition_goes_on(narrow):
    large = noise(99_700, 1)
    narrow.send(
        [
            *[Line(b"s1", b'"%d"' % number) for number in range(5)],
            Line(b"s1", large),
            *[Line(b"s2", b'"%d"' % number) for number in range(5)],
            Line(b"s1", b'"after"'),
            *[Line(session, None) for session in (b"s1", b"s2")],
        ]
    )
    worker = narrow.start()
    verdict = narrow.judged()
    assert (verdict.records, verdict.open) == (12, 0)
    assert worker.is_running()
    chunks = [json.loads(message.value) for message in narrow.read(narrow.chunks)]
    [omitted] = [record for chunk in chunks for record in chunk["records"] if record.get("omitted")]
    assert (omitted["bytes"], omitted["omitted"]) == (99_700, "too_large")


def test_chunks_that_fit_one_by_one_all_come_out_whole(narrow):
    """Many in one transaction: what is sent together must not be refused for its sum."""
    narrow.send([Line(b"s%d" % (number % 3), noise(70_000, number)) for number in range(24)])
    narrow.send([Line(b"t%d" % (number % 3), noise(15_000, number)) for number in range(60)])
    narrow.start()
    verdict = narrow.judged()
    assert verdict.records == 84
    assert not any(b'"omitted"' in message.value for message in narrow.read(narrow.chunks))


def test_dead_letter_that_its_topic_refuses_ends_the_worker_with_the_remedy(narrow):
    """Symptom: the partition opened and failed again, for ever."""
    narrow.send([Line(None, noise(99_900, 1), 0)])
    worker = narrow.start()
    assert worker.exit_code(within_s=30) == 70
    said = worker.output().splitlines()[-1]
    assert f"{narrow.topics.dead_letter_topic} refuses a message as too large" in said
    assert f"Raise it well above that of {narrow.records}" in said
