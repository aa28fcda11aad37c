import asyncio
import json

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.partitioner import DefaultPartitioner

from tests.builders import chunk_document
from tests.e2e.verbs import run_verb

PARTITIONS = 3


def run(settings, *args, stdin=b""):
    return run_verb(settings, *args, stdin=stdin)


def records_of(settings):
    """Read all of ``records``: (partition, key, value) in order within a partition."""

    async def read():
        consumer = AIOKafkaConsumer(bootstrap_servers=settings.bootstrap_servers)
        await consumer.start()
        try:
            partitions = [TopicPartition(settings.records_topic, p) for p in range(PARTITIONS)]
            consumer.assign(partitions)
            await consumer.seek_to_beginning()
            ends = await consumer.end_offsets(partitions)
            found = []
            for partition in partitions:
                while await consumer.position(partition) < ends[partition]:
                    batches = await consumer.getmany(partition, timeout_ms=500)
                    found += [(r.partition, r.key, r.value) for b in batches.values() for r in b]
            return found
        finally:
            await consumer.stop()

    return asyncio.run(read())


def test_file_is_sent_to_the_byte_and_in_order(settings, tmp_path):
    lines = [b"%d \xe2\x80\xa8\r \xff" % number + b"." * (number % 900) for number in range(3000)]
    file = tmp_path / "talk.jsonl"
    file.write_bytes(b"\n".join(lines))
    done = run(settings, "produce", str(file), "--end")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"sent 3,000 records in 1 sessions")
    found = records_of(settings)
    assert [value for _, _, value in found] == [*lines, None]
    assert {key for _, key, _ in found} == {b"talk"}


def test_sessions_go_where_javas_clients_send_them(settings):
    lines = b"".join(b'{"s":"session-%d"}\n' % (number % 20) for number in range(200))
    done = run(settings, "produce", "-", "--session-field", "s", stdin=lines)
    assert done.returncode == 0, done.stderr
    choose = DefaultPartitioner()
    everywhere = list(range(PARTITIONS))
    found = records_of(settings)
    assert len(found) == 200
    assert all(choose(key, everywhere, everywhere) == place for place, key, _ in found)
    assert len({place for place, _, _ in found}) == PARTITIONS


def test_record_larger_than_the_topic_takes_stops_the_file_there(settings, tmp_path):
    file = tmp_path / "talk.jsonl"
    file.write_bytes(b"before\n" + b"x" * 21_000_000 + b"\nafter\n")
    done = run(settings, "produce", str(file))
    assert done.returncode == 1
    assert b"talk.jsonl:2: a record of 21,000,000 bytes" in done.stderr
    assert [value for _, _, value in records_of(settings)] == [b"before"]


@pytest.mark.parametrize("args", [["produce", "-", "--session", "s"], ["tail"]])
def test_missing_topic_is_named_not_created(settings, args):
    names = {field: f"{settings.app_id}.no-{field}" for field in ("records_topic", "chunks_topic")}
    nowhere = settings.model_copy(update=names)
    gone = names["chunks_topic" if args == ["tail"] else "records_topic"]
    for _ in range(2):  # a topic made by asking would be there the second time
        done = run(nowhere, *args, stdin=b"x\n")
        assert done.returncode == 78
        assert f"{gone}; create with".encode() in done.stderr


def test_tail_prints_chunks_from_the_start_to_the_byte(settings):
    chunks = [chunk_document(session=f"s{number % 2}", t=number) for number in range(10)]
    lines = [json.dumps(chunk, ensure_ascii=False).encode() for chunk in chunks]
    topics = {"records_topic": settings.chunks_topic, "chunks_topic": settings.records_topic}
    to_chunks = settings.model_copy(update=topics)
    sent = run(to_chunks, "produce", "-", "--session-field", "session", stdin=b"\n".join(lines))
    assert sent.returncode == 0, sent.stderr

    every = run(settings, "tail", "--from-start", "--max-chunks", "10", "--output", "json")
    assert sorted(every.stdout.removesuffix(b"\n").split(b"\n")) == sorted(lines)
    one = run(settings, "tail", "--from-start", "--session", "s1", "--max-chunks", "5")
    assert one.returncode == 0, one.stderr
    assert [line.split("  ")[:2] for line in one.stdout.decode().splitlines()] == [
        ["s1", f"t={number}"] for number in (1, 3, 5, 7, 9)
    ]
