import asyncio
import json

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from processor.app import chunker_config
from processor.cli.stopped import NoMember
from processor.core.records import Carried, Record
from processor.core.session_state import SessionState
from processor.kafka.broker import KafkaPartitionBroker
from processor.kafka.flow import chunking
from processor.protocol.changelog import (
    Counts,
    PartitionEntry,
    decode_partition,
    encode_partition,
    encode_session,
)
from processor.protocol.loading import all_entries
from processor.protocol.port import Transaction
from processor.protocol.start_checks import world_agrees
from tests.e2e.verbs import run_verb

PARTITIONS = 2
RECORDS = [
    (b"done", b"1"),
    (b"open", b"2"),
    (b"open", b"3"),
    (None, b"4"),
    (b"new", b"5"),
    (b"new", b"6"),
]


def run(settings, *args, stdin=""):
    return run_verb(
        settings,
        "state",
        *args,
        stdin=stdin,
        PROCESSOR_APP_ID=settings.app_id,
        PROCESSOR_TOKEN_COUNTER=settings.token_counter,
    )


def shown(settings, *args):
    done = run(settings, "show", "--output", "json", *args)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def broker_of(settings, partition=0):
    return KafkaPartitionBroker(settings, chunking(settings), partition, NoMember())


def write_state(settings):
    """Leave what a worker leaves that has read five of six records of partition 0."""

    async def write():
        producer = AIOKafkaProducer(bootstrap_servers=settings.bootstrap_servers)
        await producer.start()
        for key, value in RECORDS:
            await producer.send_and_wait(settings.records_topic, value, key, 0)
        await producer.stop()
        broker = broker_of(settings)
        await broker.fence()
        held = Record("open", b"2", 1, 1, 0, 0, Carried.VALUE)
        states = [
            SessionState("done", 3, b"d" * 32, 1, ended=True),
            SessionState("open", 1, b"o" * 32, 2, records=(held,)),
        ]
        entry = PartitionEntry(
            low=2,
            log_time_ms=0,
            seen=5,
            partition_count=PARTITIONS,
            rule=chunker_config(settings).rule,
            fingerprint=None,
            counts=Counts(4, 1, 1, 1),
        )
        entries = {it.session.encode(): encode_session(it) for it in states}
        entries[b""] = encode_partition(entry)
        await broker.commit(Transaction([], entries, [], 5))
        await broker.discard()

    asyncio.run(write())


def state_of(settings, partition=0):
    async def read():
        broker = broker_of(settings, partition)
        return await all_entries(broker), await broker.survey([])

    return asyncio.run(read())


def test_app_that_never_ran_has_no_state(settings):
    rows = shown(settings)
    assert [row["partition"] for row in rows] == list(range(PARTITIONS))
    assert all(row["low"] is None and row["committed"] is None for row in rows)
    assert all(row["problem"] is None and row["sessions"] == 0 for row in rows)


def test_partition_is_shown_as_it_stands(settings):
    write_state(settings)
    (row, _) = shown(settings)
    assert row == row | {
        "low": 2,
        "seen": 5,
        "committed": 5,
        "log_start": 0,
        "log_end": 6,
        "records": 4,
        "chunked": 1,
        "dead_letters": 1,
        "ends": 1,
        "sessions": 3,
        "open_sessions": 2,
        "open_records": 3,
        "problem": None,
    }
    text = run(settings, "show").stdout
    assert f"{settings.records_topic}[0]\n  low: 2\n" in text
    assert "max_tokens=5000" in text


def test_session_is_shown_as_it_stands(settings):
    write_state(settings)
    rows = {name: shown(settings, "--session", name)[0] for name in ("done", "open", "new")}
    found = {name: (row["t"], row["ended"], row["open_records"]) for name, row in rows.items()}
    assert found == {"done": (3, True, 0), "open": (1, False, 2), "new": (0, False, 1)}
    assert rows["done"]["digest"] == (b"d" * 32).hex()
    gone = run(settings, "show", "--session", "nobody")
    assert gone.returncode == 1
    assert "'nobody'" in gone.stderr


def test_policy_that_differs_is_shown_as_a_problem(settings):
    write_state(settings)
    (row, _) = shown(settings, "--max-tokens", "9")
    assert "max_tokens 5000 -> 9" in row["problem"]


@pytest.mark.parametrize(("to", "start"), [("earliest", 0), ("latest", 6)])
def test_reset_makes_the_next_start_a_first_start(settings, to, start):
    write_state(settings)
    done = run(settings, "reset", "--all", "--yes", "--to", to)
    assert done.returncode == 0, done.stderr
    assert (
        f"records[0]: 2 sessions forgotten; the next start reads from offset {start}" in done.stdout
    )
    assert "stay, so readers see t=1 again" in done.stdout
    changelog, survey = state_of(settings)
    entry = decode_partition(changelog, "here")
    assert changelog.keys() == {b""}
    assert (entry.low, entry.seen, entry.counts, survey.committed) == (
        start,
        start,
        Counts(),
        start,
    )
    world_agrees(entry, survey, chunker_config(settings), "here")


def test_reset_leaves_other_partitions_alone(settings):
    write_state(settings)
    before = state_of(settings)
    assert run(settings, "reset", "--partition", "1", "--yes").returncode == 0
    assert state_of(settings) == before
    assert state_of(settings, 1)[1].committed == 0


def test_reset_asks_first(settings):
    write_state(settings)
    before = state_of(settings)
    done = run(settings, "reset", "--all", stdin="n\n")
    assert done.returncode == 130
    assert f"Forget every session of app {settings.app_id}" in done.stderr
    assert state_of(settings) == before


@pytest.mark.parametrize("args", [(), ("--all", "--partition", "0"), ("--partition", "2")])
def test_reset_must_be_told_of_which_partitions(settings, args):
    assert run(settings, "reset", "--yes", *args).returncode == 2


def test_reset_is_refused_while_the_group_has_members(settings):
    write_state(settings)
    before = state_of(settings)

    async def reset_beside_a_member():
        consumer = AIOKafkaConsumer(
            settings.records_topic,
            bootstrap_servers=settings.bootstrap_servers,
            group_id=settings.app_id,
            client_id="a-worker",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            while not consumer.assignment():
                await consumer.getmany(timeout_ms=100)
            return await asyncio.to_thread(run, settings, "reset", "--all", "--yes")
        finally:
            await consumer.stop()

    done = asyncio.run(reset_beside_a_member())
    assert done.returncode == 1
    assert "has 1 members (a-worker at " in done.stderr
    assert state_of(settings) == before


def test_worker_that_was_there_before_is_fenced(settings):
    write_state(settings)

    async def commit_after_a_reset():
        broker = broker_of(settings)
        await broker.fence()
        done = await asyncio.to_thread(run, settings, "reset", "--all", "--yes")
        assert done.returncode == 0, done.stderr
        try:
            await broker.commit(Transaction([], {b"late": b"x"}, [], 5))
        finally:
            await broker.discard()

    with pytest.raises(Exception, match="a newer owner has fenced this one"):
        asyncio.run(commit_after_a_reset())
    assert state_of(settings)[0].keys() == {b""}


def test_missing_changelog_is_named_not_created(settings):
    other = settings.model_copy(update={"app_id": f"{settings.app_id}-other"})
    for _ in range(2):
        done = run(other, "show")
        assert done.returncode == 78
        assert f"{other.changelog_topic}; create with" in done.stderr
