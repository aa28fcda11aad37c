"""``read_chunks_sync``: the same for code without an event loop."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Self, TypeVar

from processor.client.chunk import Chunk, Position
from processor.client.reading import read_chunks
from processor.settings import Settings

T = TypeVar("T")


def read_chunks_sync(
    settings: Settings | None = None,
    *,
    group: str | None = None,
    session: str | None = None,
    after: Callable[[Chunk], Position | None] | None = None,
    follow: bool = True,
) -> Generator[Chunk]:
    """Read chunks as ``read_chunks`` does, in a plain loop.

    The reader runs on a thread of its own, and ``after`` is called there: so a group hears from us
    however long the loop's body takes.
    """
    return in_a_thread(
        read_chunks(settings, group=group, session=session, after=after, follow=follow)
    )


def in_a_thread(chunks: AsyncGenerator[T]) -> Generator[T]:
    """Yield what an async generator yields, which runs on a thread of its own."""
    asked: asyncio.Future[T | None] | None = None

    async def step() -> T | None:
        nonlocal asked
        asked = asyncio.ensure_future(anext(chunks, None))
        return await asked

    async def close() -> None:
        if asked is not None:  # an interruption may have come at any point
            asked.cancel()
            await asyncio.wait((asked,))
        await chunks.aclose()

    with _Loop() as loop:
        try:
            while (chunk := loop.run(step())) is not None:
                yield chunk
        finally:
            loop.run(close())


class _Loop:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="chunks", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, work: Coroutine[None, None, T]) -> T:
        """Wait for ``work``."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
