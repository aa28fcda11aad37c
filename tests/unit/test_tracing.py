"""Spans of chunks: what they say, which spans they are linked to, and what stays as it is."""

import asyncio
import os
import subprocess
import sys
from contextlib import suppress

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from processor.app import create_app
from processor.core.errors import ConfigError, UnreachableError
from processor.core.policy import ChunkPolicy
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.partition import Partition
from processor.protocol.port import Batch
from processor.settings import Settings
from processor.testing import FakeClock, RecordingMetrics
from processor.tracing import ChunkTracer, span_context
from tests.history import QUARTERS, log_of
from tests.property.one_log import OneLog
from tests.unit.proof.verifying import verify

TRACE_ID = 0x0AF7651916CD43DD8448EB211C80319C
POLICY = ChunkPolicy(10)
LOG = log_of("a:1", "a:2", "b:" + "x" * 100, "a:3", "a:4", "a.")


def parent(span_id):
    return b"00-%032x-%016x-01" % (TRACE_ID, span_id)


def with_parents(log, span_ids):
    return [
        it._replace(headers=(("other", None), ("traceparent", parent(span_id)))) if span_id else it
        for it, span_id in zip(log, span_ids, strict=True)
    ]


class RefusingLog(OneLog):
    async def commit(self, _):
        message = "no broker"
        raise UnreachableError(message)


def spans_of(log, *, is_traced=True, policy=POLICY):
    """Feed a log whole, commit if it takes that, and return the spans."""
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = ChunkTracer(provider.get_tracer("test"), "records", "app")
    tracing = tracer.partition if is_traced else None
    config = ChunkerConfig("records", policy, QUARTERS, tracing=tracing)

    async def story():
        partition = Partition(0, log, config, FakeClock(), RecordingMetrics())
        await partition.open(lambda: True)
        partition.feed(Batch(0, partition.incarnation, 0, log.end, log.log, 1 << 60))
        assert exporter.get_finished_spans() == ()
        with suppress(UnreachableError):
            await partition.commit()

    asyncio.run(story())
    return exporter.get_finished_spans()


def test_a_chunk_is_a_span_that_is_linked_once_to_each_span_of_its_records():
    _, whole = spans_of(OneLog(with_parents(LOG, [7, 8, 0, 7, 0, 9])))
    assert [it.context.span_id for it in whole.links] == [7, 8]
    assert {it.context.trace_id for it in whole.links} == {TRACE_ID}
    assert whole.parent is None
    assert whole.kind is SpanKind.CONSUMER
    assert whole.name == "process records"
    assert dict(whole.attributes) == {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "records",
        "messaging.destination.partition.id": "0",
        "messaging.consumer.group.name": "app",
        "messaging.batch.message_count": 4,
        "messaging.kafka.offset": 0,
        "messaging.kafka.message.key": "a",
        "processor.chunk.t": 1,
        "processor.chunk.token_count": 4,
        "processor.chunk.flush": "end",
        "processor.chunk.final": True,
        "processor.chunk.linked_span_count": 2,
    }


def test_a_chunk_names_its_span_in_its_headers_and_is_the_same_to_the_byte():
    traced, plain = OneLog(with_parents(LOG, [7, 8, 0, 7, 0, 9])), OneLog(LOG)
    spans = spans_of(traced)
    assert spans_of(plain, is_traced=False) == ()
    assert [it.value for it in traced.chunks] == [it.value for it in plain.chunks]
    assert traced.entries == plain.entries
    for span, one, other in zip(spans, traced.chunks, plain.chunks, strict=True):
        *own, (name, value) = one.headers
        assert own == other.headers
        assert name == "traceparent"
        assert span_context(value).span_id == span.context.span_id


def test_no_proof_looks_at_the_trace_of_a_chunk():
    log = OneLog(with_parents(LOG, [7] * 6))
    spans_of(log)
    chunks = [
        it._replace(offset=offset, timestamp=0)
        for offset, it in enumerate(
            LOG[0]._replace(key=one.key, value=one.value, headers=tuple(one.headers))
            for one in log.chunks
        )
    ]
    report = verify(log.log, chunks, recompute=True)
    assert report.recomputed_count == len(chunks)
    assert "traceparent" in dict(chunks[0].headers)
    assert [it for it in report.faults.values() if it] == []


def test_a_chunk_that_is_not_committed_says_why():
    spans = spans_of(RefusingLog(LOG))
    assert [it.status.status_code for it in spans] == [StatusCode.ERROR] * 2
    assert [it.attributes["error.type"] for it in spans] == ["UnreachableError"] * 2


@pytest.mark.parametrize("value", [b"", b"\xff", b"x" * 5000, parent(0), parent(7)[:-1], b"00--"])
def test_a_header_that_names_no_span_links_to_none(value):
    headers = (("traceparent", value),)
    (_, span) = spans_of(OneLog([it._replace(headers=headers) for it in LOG]))
    assert list(span.links) == []


def test_a_span_has_so_many_links_at_most_and_says_how_many_there_were():
    policy = ChunkPolicy(1000)
    log = with_parents(log_of(*["a:1"] * 200, "a."), [*range(1, 201), 0])
    (span,) = spans_of(OneLog(log), policy=policy)
    assert len(span.links) == 128
    assert span.attributes["processor.chunk.linked_span_count"] == 200


def test_tracing_without_its_packages_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "processor.tracing", None)
    with pytest.raises(ConfigError, match=r"PROCESSOR_TRACING.*processor\[otel\]"):
        create_app(Settings(app_id="a", tracing=True))


def test_opentelemetry_is_not_imported_while_tracing_is_off():
    code = "import sys, processor.app as a; from processor.settings import Settings;"
    code += "a.create_app(Settings(app_id='a')); print('opentelemetry.sdk' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert done.stdout == "False\n"
