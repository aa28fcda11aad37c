"""Messages of the topic of chunks, as a consumer delivers them."""

import asyncio
from contextlib import aclosing, asynccontextmanager
from types import SimpleNamespace

from processor.client.chain import Chains
from processor.client.delivery import Delivery
from processor.client.reading import checked


def message(line, offset, *, session="s", partition=0):
    return SimpleNamespace(
        topic="chunks", partition=partition, offset=offset, key=session.encode(), value=line
    )


def messages_of(lines, *, first=0, session="s", partition=0):
    return [
        message(line, offset, session=session, partition=partition)
        for offset, line in enumerate(lines, first)
    ]


@asynccontextmanager
async def delivery_of(messages):
    async def nothing():
        pass

    yield Delivery(messages, nothing)


def nowhere(_):
    return None


def read(messages, *, session=None, after=nowhere, chains=None):
    """Read what is delivered; on an error, what came before is in its attribute ``seen``."""
    seen = []

    async def deliver():
        for it in messages:
            yield it

    async def run():
        async with aclosing(
            checked(delivery_of(deliver()), chains or Chains(after), session)
        ) as chunks:
            async for it in chunks:
                seen.append(it)  # noqa: PERF401 - what came before an error counts

    try:
        asyncio.run(run())
    except Exception as error:
        error.seen = seen
        raise
    return seen
