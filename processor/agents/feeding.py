"""What every agent does: hand each fetched batch to its partition."""

from collections.abc import AsyncIterable

from processor.protocol.partitions import Partitions
from processor.protocol.port import Batch


async def feed_all(partitions: Partitions, batches: AsyncIterable[Batch]) -> None:
    """Feed ``partitions`` for as long as there are batches."""
    async for batch in batches:
        await partitions.feed(batch)
