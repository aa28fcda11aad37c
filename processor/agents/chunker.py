"""The agent that chunks records; no rule about chunks."""

from collections.abc import AsyncIterable, Awaitable, Callable

from processor.agents.feeding import feed_all
from processor.protocol.partitions import Partitions
from processor.protocol.port import Batch


def chunker(partitions: Partitions) -> Callable[[AsyncIterable[Batch]], Awaitable[None]]:
    """Return the agent's function over ``partitions``."""

    async def chunk_records(batches: AsyncIterable[Batch]) -> None:
        await feed_all(partitions, batches)

    return chunk_records
