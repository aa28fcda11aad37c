"""Traces of a real worker, as a collector of OpenTelemetry receives them."""

import gzip
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.e2e.producing import Line

PARENT = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@contextmanager
def collector():
    """Take exports of spans, and yield where to send them and the list of what came."""
    received = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            received.append(ExportTraceServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", received
        finally:
            server.shutdown()
            thread.join()


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
        exports = [it for one in received for it in one.resource_spans]
    (span,) = [it for one in exports for by in one.scope_spans for it in by.spans]
    named = {it.key: it.value.string_value for it in exports[0].resource.attributes}
    assert named["service.name"] == app.topics.app_id
    _, trace_id, span_id, _ = dict(message.headers)["traceparent"].decode().split("-")
    assert (span.trace_id.hex(), span.span_id.hex()) == (trace_id, span_id)
    (link,) = span.links
    assert [link.trace_id.hex(), link.span_id.hex()] == PARENT.decode().split("-")[1:3]
    assert len(json.loads(message.value)["records"]) == 2
    assert b"traceparent" not in message.value
    done = app.run("verify", "--recompute")
    assert done.returncode == 0, done.stdout
