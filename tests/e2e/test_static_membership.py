"""Workers with an id of their own in the group: a restart moves no partition."""

import time

import pytest

from processor.demo.transcripts import transcripts
from tests.e2e.producing import lines_of
from tests.e2e.workers import deployments

pytestmark = pytest.mark.needs("eviction")

#: Long enough for a worker to come back; the group gives its partitions away after that.
SESSION_TIMEOUT_S = 30
READY = "partition is ready"


@pytest.fixture
def app(broker, tmp_path):
    with deployments(broker, tmp_path) as deploy:
        yield deploy(session_timeout_s=SESSION_TIMEOUT_S)


def start(app, instance):
    return app.start(group_instance_id=instance)


def start_two(app):
    """Start two workers and wait until they share the partitions."""
    first = start(app, "a")
    app.wait_for_output(first, READY)
    other = start(app, "b")
    app.wait_for_output(other, READY)
    app.send(some_lines(500, 41))
    app.wait_until_caught_up()
    return first, other


def some_lines(count, seed):
    return lines_of(transcripts(count, seed, sessions=80, max_line_bytes=8_000))


def openings(worker):
    """Count how often a partition was opened or resumed; each rebalance does so with each."""
    return worker.output().count(READY)


@pytest.mark.parametrize("how", ["terminate", "kill"])
def test_worker_that_comes_back_has_its_partitions_at_once_and_the_other_notices_nothing(app, how):
    first, other = start_two(app)
    before = openings(other)
    with app.flow(some_lines(6_000, 42), per_s=500) as flow:
        flow.wait_for(0.2)
        if how == "kill":
            first.kill()
        else:
            assert first.terminate() == 0
        again, started_at = start(app, "a"), time.monotonic()
        app.wait_for_output(again, READY)
        assert time.monotonic() - started_at < SESSION_TIMEOUT_S / 2
    assert app.judged().records == 6_500
    assert openings(other) == before
    assert openings(again) == app.partitions - 2
    app.wait_for_members(2)


@pytest.mark.parametrize("is_frozen", [False, True])
def test_of_two_workers_with_one_id_the_older_ends_and_says_so(app, is_frozen):
    """Symptom: it took the id back, the other did the same, and so on for ever."""
    older = start(app, "a")
    app.wait_for_output(older, READY)
    with app.flow(some_lines(6_000, 43), per_s=500) as flow:
        flow.wait_for(0.1)
        if is_frozen:
            older.freeze()
        younger = start(app, "a")
        app.wait_for_output(younger, READY)
        if is_frozen:
            older.thaw()
        assert older.exit_code(within_s=30) == 70
        before = openings(younger)
    [said] = [it for it in older.output().splitlines() if it.startswith("processor: ")]
    assert "another process has joined with our KAFKA_GROUP_INSTANCE_ID=a" in said
    assert app.judged().records == 6_000
    assert openings(younger) == before
    assert younger.terminate() == 0
