"""Traces of a real worker, as a collector of OpenTelemetry receives them."""

import json

from tests.collector import collector
from tests.e2e.producing import Line

PARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_chunks_message_continues_the_trace_that_the_collector_has(deploy, monkeypatch):
    app = deploy(partitions=1, idle_s=0, tracing=True)
    with collector() as (url, received):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
        worker = app.start()
        headers = (("traceparent", PARENT),)
        app.send([Line(b"a", b'{"n":1}', 0, headers), Line(b"a", b"2", 0), Line(b"a", None, 0)])
        app.wait_for_chunks(1)
        app.wait_until_caught_up()
        worker.terminate()
        (message,) = app.read(app.chunks)
    (span,) = [it for one in received for by in one.scope_spans for it in by.spans]
    named = {it.key: it.value.string_value for it in received[0].resource.attributes}
    assert named["service.name"] == app.topics.app_id
    _, trace_id, span_id, _ = dict(message.headers)["traceparent"].decode().split("-")
    assert (span.trace_id.hex(), span.span_id.hex()) == (trace_id, span_id)
    (link,) = span.links
    assert [link.trace_id.hex(), link.span_id.hex()] == PARENT.decode().split("-")[1:3]
    assert len(json.loads(message.value)["records"]) == 2
    assert b"traceparent" not in message.value
    done = app.run("verify", "--recompute")
    assert done.returncode == 0, done.stdout
