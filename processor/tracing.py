"""Chunks as spans of OpenTelemetry, linked to the spans that their records come from.

A chunk is made of records of many traces, so its span has links to them, not a parent. The names
are those of the messaging conventions (OpenTelemetry semantic conventions 1.44). Nothing of it goes
into a chunk: only its message gets the headers of W3C's trace context, which no proof looks at.

Importing this takes the packages of the extra ``otel``.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from processor.core.chunks import Chunk
from processor.headers import TRACEPARENT
from processor.protocol.port import LogRecord

#: Open records of a partition whose spans are remembered; those of the oldest are left out.
_MAX_REMEMBERED: Final = 50_000
#: Links of one span, as many as OpenTelemetry takes unless told otherwise.
_MAX_LINKS: Final = 128
#: A traceparent has 55 bytes; a later version of it may have more.
_MAX_BYTES: Final = 200
_SERVICE: Final = "service.name"
_w3c: Final = TraceContextTextMapPropagator()


class ChunkTracer:
    """Makes spans of the chunks of one app.

    Args:
        tracer: Where spans go.
        topic: What records are read from.
        group: As whom.
    """

    def __init__(self, tracer: trace.Tracer, topic: str, group: str) -> None:
        self._tracer = tracer
        self._name = f"process {topic}"
        self._attributes: dict[str, str] = {
            "messaging.system": "kafka",
            "messaging.operation.name": "process",
            "messaging.operation.type": "process",
            "messaging.destination.name": topic,
            "messaging.consumer.group.name": group,
        }

    def partition(self, number: int) -> "PartitionTracer":
        """Return the traces of one opening of a partition."""
        return PartitionTracer(self, number)

    def begin(
        self, chunk: Chunk, partition: int, linked: Sequence[trace.SpanContext]
    ) -> trace.Span:
        """Return the span of a chunk, begun now."""
        attributes: dict[str, str | int | bool] = {
            **self._attributes,
            "messaging.destination.partition.id": str(partition),
            "messaging.batch.message_count": len(chunk.records),
            "messaging.kafka.message.key": chunk.session,
            "processor.chunk.t": chunk.t,
            "processor.chunk.token_count": chunk.token_count,
            "processor.chunk.flush": chunk.flush.value,
            "processor.chunk.final": chunk.final,
            "processor.chunk.linked_span_count": len(linked),
        }
        if chunk.records:
            attributes["messaging.kafka.offset"] = chunk.records[0].offset or 0
        links = [trace.Link(it) for it in linked[:_MAX_LINKS]]
        return self._tracer.start_span(
            self._name, kind=trace.SpanKind.CONSUMER, attributes=attributes, links=links
        )


class PartitionTracer:
    """``PartitionTracing`` of the protocol: remembers of open records whose spans they come from.

    Not across a restart for records that the changelog holds, which have no headers there.
    """

    def __init__(self, app: ChunkTracer, number: int) -> None:
        self._app = app
        self._number = number
        self._parents: OrderedDict[int, bytes] = OrderedDict()

    def take(self, records: Sequence[LogRecord]) -> None:
        """Remember the spans that records name in their headers."""
        for record in records:
            if not record.headers:
                continue
            parent = dict(record.headers).get(TRACEPARENT)
            if parent is not None and len(parent) <= _MAX_BYTES:
                self._parents[record.offset] = parent
        while len(self._parents) > _MAX_REMEMBERED:
            self._parents.popitem(last=False)

    def begin(self, chunk: Chunk) -> "SpanOfChunk":
        """Begin the span of a chunk, linked once to each span that a record of it names."""
        named = [self._parents.pop(it.offset or 0, None) for it in chunk.records]
        contexts = (span_context(it) for it in dict.fromkeys(named) if it is not None)
        linked = [it for it in contexts if it is not None]
        return SpanOfChunk(self._app.begin(chunk, self._number, linked))


class SpanOfChunk:
    """``ChunkSpan`` of the protocol."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        """The headers of W3C's trace context; none where ``OTEL_SDK_DISABLED`` is set."""
        carrier: dict[str, str] = {}
        _w3c.inject(carrier, trace.set_span_in_context(self._span, Context()))
        return [(name, value.encode()) for name, value in carrier.items()]

    def end(self, error: BaseException | None = None) -> None:
        """End the span, with the type of what kept the chunk from being committed, if anything."""
        if error is not None:
            self._span.set_attribute("error.type", type(error).__name__)
            self._span.set_status(trace.StatusCode.ERROR, "not committed")
        self._span.end()


def chunk_tracer(app_id: str, topic: str) -> ChunkTracer:
    """Return a tracer of an app's chunks, set up by the standard ``OTEL_*`` variables.

    Where this process has a provider of traces already, that is used. Else spans go to
    ``OTEL_EXPORTER_OTLP_ENDPOINT``, by OTLP over HTTP, from a thread of its own.
    """
    provider = trace.get_tracer_provider()
    if isinstance(provider, trace.ProxyTracerProvider):
        is_named = _SERVICE in OTELResourceDetector().detect().attributes
        made = TracerProvider(resource=Resource.create({} if is_named else {_SERVICE: app_id}))
        made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        provider = made
    return ChunkTracer(provider.get_tracer("processor"), topic, app_id)


def span_context(traceparent: bytes) -> trace.SpanContext | None:
    """Return the span that a header names, ``None`` where it names none."""
    carrier = {TRACEPARENT: traceparent.decode("latin-1")}
    context = trace.get_current_span(_w3c.extract(carrier, Context())).get_span_context()
    return context if context.is_valid else None
