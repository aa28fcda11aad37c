"""What the protocol asks of tracing, where it is on: two calls, one a batch and one a chunk."""

from collections.abc import Sequence
from typing import Protocol

from processor.core.chunks import Chunk
from processor.protocol.port import LogRecord


class ChunkSpan(Protocol):
    """What is told of one chunk, from its closing to its commit."""

    @property
    def headers(self) -> Sequence[tuple[str, bytes]]:
        """Headers by which readers of the chunk's message go on with the trace."""
        ...

    def end(self, error: BaseException | None = None) -> None:
        """Say that the chunk is committed, or why it is not."""
        ...


class PartitionTracing(Protocol):
    """Traces of one opening of a partition."""

    def take(self, records: Sequence[LogRecord]) -> None:
        """Take the next records of the log, of which some may belong to a trace."""
        ...

    def begin(self, chunk: Chunk) -> ChunkSpan:
        """Return the span of a chunk that has just closed, linked to those of its records."""
        ...
