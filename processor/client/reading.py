"""``read_chunks``: the chunks of the topic, as an async iterator."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing

from processor.client.chain import Chains
from processor.client.chunk import Chunk, Delivered, Position, chunk_of
from processor.client.delivery import Delivery, ending, following, shared
from processor.core.errors import ConfigError
from processor.settings import Settings
from processor.settings_loading import load_settings


def read_chunks(
    settings: Settings | None = None,
    *,
    group: str | None = None,
    session: str | None = None,
    after: Callable[[Chunk], Position | None] | None = None,
    follow: bool = True,
) -> AsyncGenerator[Chunk]:
    """Read committed chunks: those of a session in order, each checked against the one before.

    Without a group, from the oldest chunk on, and all partitions. With one, the members of the
    group share the partitions, and go on where the group stands. Its position moves when the next
    chunk is asked for: after a kill, or where a rebalance takes its partition away, the chunk in
    hand comes again, no other. An error, or ``break``, in the loop's body leaves its chunk undone.

    To have the effect of each chunk once, keep its ``position`` together with what you made of it,
    in one write, and give it back by ``after``: chunks up to it are left out.

    Args:
        settings: How to connect, and ``chunks_topic``; ``load_settings()`` when not given.
        group: Name of a consumer group.
        session: Only the chunks of this one.
        after: Returns the position that you kept for a chunk's session; ``None`` for none. It is
            asked once a session, and again after a rebalance.
        follow: Wait for more at the end; else end there, which a group never does.

    Yields:
        The chunks. To check them takes some hundred bytes of memory for each session.

    Raises:
        ChainError: A chunk is missing, repeated or changed: a ``GapError``, ``RepeatError`` or
            ``DigestError``. The group's position stays before it.
        StateError: A message is no chunk, or messages were deleted before they were read.
        ConfigError: There is no such topic, we may not read it, or a group is to end.
        UnreachableError: No broker answers.
    """
    if group is not None and not follow:
        message = "a group reads on for ever: leave out group=..., or follow=False"
        raise ConfigError(message)
    settings = settings or load_settings()
    chains = Chains(after or _nowhere)
    if group is not None:
        return checked(shared(settings, group, chains.forget), chains, session)
    return checked(following(settings) if follow else ending(settings), chains, session)


async def checked(
    delivery: AbstractAsyncContextManager[Delivery], chains: Chains, session: str | None
) -> AsyncGenerator[Chunk]:
    """Yield the chunks in what is delivered, and call it done when the next is asked for.

    Args:
        delivery: The messages.
        chains: Judges each chunk.
        session: Only the chunks of this one.

    Raises:
        ChainError: As ``Chains.take``.
        StateError: A message is no chunk.
    """
    async with (
        delivery as (messages, done),
        aclosing(messages),
        aclosing(_new_chunks(messages, chains, session)) as chunks,
    ):
        async for chunk in chunks:
            yield chunk
            await done()


async def _new_chunks(
    messages: AsyncIterator[Delivered], chains: Chains, session: str | None
) -> AsyncGenerator[Chunk]:
    key = None if session is None else session.encode()
    async for message in messages:
        if message.offset == 0:
            chains.begin(message.partition)
        if key is None or message.key == key:
            chunk = chunk_of(message)
            if chains.take(chunk):
                yield chunk


def _nowhere(_: Chunk) -> Position | None:
    return None
