"""What befell others that takes a worker, or a producer, of its own to show."""

import asyncio
import random
import time

import aiokafka.producer.producer
import pytest
from aiokafka.producer import message_accumulator
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy

from tests.e2e.chunk_reading import read_chunk
from tests.e2e.oracle import QUARTERS
from tests.e2e.producing import Line, producer

HELD_UP = "an open transaction holds a partition up"
STUCK_AFTER_S = 2
#: Well above what a record may weigh and a chunk may hold in all.
HUGE_BUDGET = 10_000_000


class OddName(str):
    """The name of a header, of bytes that librdkafka sends and aiokafka would refuse to."""

    __slots__ = ()

    def encode(self, *_):
        return b"\xff\xfe"


def chunks_of(app):
    return [read_chunk(message.value) for message in app.read(app.chunks)]


def test_chunk_below_the_token_budget_stays_below_the_brokers_limit(deploy):
    """Symptom: events that were fine one by one were refused together, above 1 MB.

    langfuse/langfuse#1676, traceloop/openllmetry#3211: tokens bound what a model reads, bytes what
    a topic takes.
    """
    texts = random.Random(5)  # noqa: S311 - incompressible, nothing secret
    app = deploy(partitions=1, idle_s=0, max_tokens=HUGE_BUDGET, token_counter=QUARTERS)
    app.send([Line(b"s1", b'"%s"' % texts.randbytes(15_000).hex().encode()) for _ in range(100)])
    app.send([Line(b"s1", None)])
    app.start()
    assert (app.judged().records, app.judged().open) == (100, 0)
    found = app.read(app.chunks)
    assert [read_chunk(it.value).flush for it in found] == ["bytes", "bytes", "bytes", "end"]
    assert max(len(it.value) for it in found) <= 900_000


def test_header_whose_name_is_not_utf8_holds_up_nothing(deploy, monkeypatch):
    """Symptom: none reported; aiokafka raises at each attempt to read such a record, for ever."""
    app = deploy(partitions=1, idle_s=0, token_counter=QUARTERS)
    odd = (OddName("odd"), b"1")
    with monkeypatch.context() as patch:
        for module in (message_accumulator, aiokafka.producer.producer):
            patch.setattr(module, "DefaultRecordBatchBuilder", _DefaultRecordBatchBuilderPy)
        app.send([Line(b"s1", b"1"), Line(b"s1", b"2", 0, (odd,)), Line(None, b"3", 0, (odd,))])
        app.send([Line(b"s1", None)])
    worker = app.start()
    app.wait_until_caught_up()
    assert [it.value for chunk in chunks_of(app) for it in chunk.records] == [b"1", b"2"]
    [letter] = app.read(app.topics.dead_letter_topic)
    assert (letter.value, letter.headers[0]) == (b"3", ("\ufffd\ufffd", b"1"))
    assert app.run("verify", "--recompute").returncode == 0
    assert worker.terminate() == 0


def test_records_of_a_worker_killed_before_its_commit_come_once_under_their_first_numbers(deploy):
    """Symptom: a checkpoint was lost, and 41 messages came again under new numbers.

    Martian-Engineering/lossless-claw#561.
    """
    app = deploy(partitions=1, idle_s=0, token_counter=QUARTERS)
    values = [b'{"n":%d,"text":"%s"}' % (number, b"x" * 2_000) for number in range(43)]
    app.send([Line(b"s1", value) for value in values])
    worker = app.start(commit_interval_s=300)
    app.wait_for_output(worker, "partition is ready")
    time.sleep(3)  # nothing outside shows that the worker has read all there is
    assert app.read(app.chunks) == []
    app.kill(worker)
    app.start()
    app.send([Line(b"s1", None)])
    assert (app.judged().records, app.judged().open) == (43, 0)
    found = chunks_of(app)
    assert [it.t for it in found] == [1, 2, 3, 4, 5]
    assert [record.value for it in found for record in it.records] == values


def test_session_that_its_producer_sends_all_again_comes_once_if_asked(deploy):
    """The same report's other half: the producer lost its checkpoint, and sent all 43 once more."""
    app = deploy(partitions=1, idle_s=0, token_counter=QUARTERS, deduplicate_records=100)
    lines = [
        Line(b"s1", b'{"n":%d}' % number, None, (("record-id", b"%d" % number),))
        for number in range(43)
    ]
    app.send(lines)
    first = app.start()
    app.wait_until_caught_up()
    app.kill(first)
    app.start()
    app.send(lines)
    app.send([Line(b"s1", None)])
    app.wait_until_caught_up()
    [chunk] = chunks_of(app)
    assert [record.value for record in chunk.records] == [line.value for line in lines]
    # The oracle counts what is left out as missing; this knows which window it was left out by.
    assert app.run("verify").returncode == 0


@pytest.mark.needs("eviction")  # who does this also ends the transactions of the dead
def test_open_transaction_holds_up_its_partition_alone_until_the_broker_aborts_it(deploy):
    """A producer vanishes with a transaction open; what lies behind it waits, and nothing else."""

    async def vanish():
        name = {"transactional_id": app.records, "transaction_timeout_ms": 5_000}
        async with producer(app.bootstrap, **name) as lost:  # whose stop() ends no transaction
            await lost.begin_transaction()
            await lost.send_and_wait(app.records, b'"aborted"', b"held", 0)

    app = deploy(partitions=2, idle_s=0, stuck_after_s=STUCK_AFTER_S)
    worker = app.start()
    app.wait_for_members(1)
    asyncio.run(vanish())
    app.send([Line(b"held", b'"first"', 0), Line(b"held", b'"second"', 0), Line(b"held", None, 0)])
    app.send([Line(b"free", b'"%d"' % number, 1) for number in range(3)])
    app.send([Line(b"free", None, 1)])
    app.wait_for_chunks(1)
    app.wait_for_output(worker, HELD_UP)
    assert [(it.session, len(it.records)) for it in chunks_of(app)] == [("free", 3)]
    verdict = app.judged()
    assert (verdict.records, verdict.open) == (5, 0)
    [held] = [it for it in chunks_of(app) if it.session == "held"]
    assert [it.value for it in held.records] == [b'"first"', b'"second"']
    assert worker.terminate() == 0
