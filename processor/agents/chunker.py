"""The agent that hands each fetched batch to its partition; no rule about chunks."""

from collections.abc import AsyncIterable, Awaitable, Callable

from processor.protocol.partitions import Partitions
from processor.protocol.port import Batch


def chunker(partitions: Partitions) -> Callable[[AsyncIterable[Batch]], Awaitable[None]]:
    """Return the agent's function over ``partitions``."""

    async def chunk_records(batches: AsyncIterable[Batch]) -> None:
        async for batch in batches:
            await partitions.feed(batch)

    return chunk_records
