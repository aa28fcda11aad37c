"""The agent that keys telemetry by session; no rule about formats."""

from collections.abc import AsyncIterable, Awaitable, Callable

from processor.agents.feeding import feed_all
from processor.protocol.partitions import Partitions
from processor.protocol.port import Batch


def router(partitions: Partitions) -> Callable[[AsyncIterable[Batch]], Awaitable[None]]:
    """Return the agent's function over ``partitions``."""

    async def route_telemetry(batches: AsyncIterable[Batch]) -> None:
        await feed_all(partitions, batches)

    return route_telemetry
