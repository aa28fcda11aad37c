"""A worker that hangs ends itself and says where; one that only waits is left alone."""

import asyncio
import time
from contextlib import asynccontextmanager

from processor.demo.transcripts import transcripts
from tests.e2e.faulty import start_faulty
from tests.e2e.producing import lines_of, producer
from tests.e2e.workers import deployments

#: Seconds; so small that whatever could be taken for stuck, though it is not, would be.
STUCK_AFTER_S = 2
STUCK = "stuck at offset"
HELD_UP = "an open transaction holds a partition up"


def some_lines(count, seed):
    return lines_of(transcripts(count, seed, sessions=20, max_line_bytes=8_000))


def test_partition_that_hangs_ends_the_worker_with_its_stacks_and_nothing_is_lost(deploy):
    """Symptom: consumers that live, send heartbeats, and process nothing for a night."""
    app = deploy(partitions=2, stuck_after_s=STUCK_AFTER_S, idle_s=0)
    app.send(some_lines(500, 31))
    worker = start_faulty(app, "Partitions.feed = hang")
    assert worker.exit_code(within_s=30) == 70
    said = worker.output()
    assert f"{STUCK} 0 for" in said.splitlines()[-1]
    assert said.count("partition as it stands") == 2
    assert "in chunk_records" in said
    assert "in hang" in said
    assert "Current thread" in said
    app.kill(worker)  # long over: but a broker that evicts nobody has to be told
    app.start()
    assert app.judged().records == 500


def test_consumer_that_dies_in_silence_ends_the_worker(deploy):
    app = deploy(partitions=1, stuck_after_s=STUCK_AFTER_S)
    worker = start_faulty(app, "BatchFetcher.take = lambda self, partitions: []")
    app.send(some_lines(10, 32))
    assert worker.exit_code(within_s=30) == 70
    assert STUCK in worker.output().splitlines()[-1]


def test_end_of_the_groups_coordination_ends_the_worker(deploy):
    """Symptom: one line of log a second, and a worker that never joined its group again."""
    app = deploy(partitions=1)
    worker = start_faulty(app, "GroupCoordinator.ensure_active_group = lambda *_: 1 / 0")
    assert worker.exit_code(within_s=30) == 70
    assert "ZeroDivisionError" in worker.output().splitlines()[-1]


def test_blocked_event_loop_ends_the_worker_with_its_stacks(deploy):
    app = deploy(partitions=1, stuck_after_s=STUCK_AFTER_S)
    worker = start_faulty(app, "Partitions.feed = block")
    app.send(some_lines(10, 33))
    assert worker.exit_code(within_s=30) == 70
    said = worker.output()
    assert "event loop was blocked" in said.splitlines()[-1]
    assert "in block" in said


def test_worker_without_a_watchdog_hangs_on(deploy):
    """What the tests above would show without it."""
    app = deploy(partitions=1, stuck_after_s=0)
    app.send(some_lines(10, 34))
    worker = start_faulty(app, "Partitions.feed = hang")
    time.sleep(4 * STUCK_AFTER_S)
    assert worker.is_running()
    worker.kill()


@asynccontextmanager
async def transaction(app, partition):
    """Yield in a transaction on a partition of records, for the test to end."""
    name = f"{app.records}-{partition}"
    async with producer(app.bootstrap, transactional_id=name) as client:
        await client.begin_transaction()
        await client.send_and_wait(app.records, b'"of a transaction"', b"s1", partition)
        yield client


def test_worker_with_nothing_to_do_is_left_alone_however_its_records_end(deploy):
    """A log that ends with a commit marker, one with an aborted record, and an empty one."""

    async def send():
        async with transaction(app, 0) as client:
            await client.commit_transaction()
        async with transaction(app, 1) as client:
            await client.abort_transaction()

    app = deploy(partitions=3, stuck_after_s=STUCK_AFTER_S)
    worker = app.start()
    asyncio.run(send())
    assert app.judged().records == 1
    time.sleep(4 * STUCK_AFTER_S)
    assert worker.is_running()
    assert worker.terminate() == 0
    assert HELD_UP not in worker.output()


def test_foreign_transaction_that_stays_open_is_told_once_and_ends_nothing(deploy):
    async def hold_open():
        async with transaction(app, 0) as client:
            await asyncio.to_thread(app.send, some_lines(100, 37))
            await asyncio.to_thread(app.wait_for_output, worker, HELD_UP)
            await asyncio.sleep(4 * STUCK_AFTER_S)
            assert worker.is_running()
            await client.commit_transaction()

    app = deploy(partitions=1, stuck_after_s=STUCK_AFTER_S)
    worker = app.start()
    app.wait_for_members(1)
    asyncio.run(hold_open())
    assert app.judged().records == 101
    said = worker.output()
    assert said.count(HELD_UP) == 1
    assert f"abort --topic {app.records} --partition 0 --start-offset 0`" in said
    assert worker.terminate() == 0


def test_worker_that_was_stopped_and_goes_on_is_left_alone(deploy):
    app = deploy(partitions=2, stuck_after_s=STUCK_AFTER_S)
    worker = app.start()
    with app.flow(some_lines(4_000, 38), per_s=500) as flow:
        flow.wait_for(0.2)
        worker.freeze()
        time.sleep(4 * STUCK_AFTER_S)
        worker.thaw()
    assert app.judged().records == 4_000
    assert worker.terminate() == 0


def test_frozen_broker_is_not_taken_for_a_stuck_partition(own_jvm_broker, tmp_path):
    with deployments(own_jvm_broker, tmp_path) as deploy:
        app = deploy(partitions=2, stuck_after_s=STUCK_AFTER_S)
        worker = app.start()
        app.wait_for_members(1)
        with app.flow(some_lines(4_000, 39), per_s=500) as flow:
            flow.wait_for(0.4)
            own_jvm_broker.freeze()
            time.sleep(4 * STUCK_AFTER_S)
            own_jvm_broker.thaw()
        assert app.judged(within_s=90).records == 4_000
        assert worker.terminate() == 0
