"""Chunks as episodes of a memory store: graphiti and mem0.

A chunk is a good episode: whole records, in order, within a model's budget, with the time when it
was said. Both stores are given by the caller::

    await to_graphiti(Graphiti(uri, user, password), read_chunks(group="graph"))
    await to_mem0(AsyncMemory(), read_chunks(group="mem0"), user_id="ann")

A group delivers a chunk again if it was killed meanwhile (or keep positions: ``memory_agent.py``).
The name of an episode, ``session/t``, tells a repeat.
"""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from processor.client import Chunk, Message

_SPEAKERS = ("user", "assistant", "system")  # what mem0 takes; a tool's answers are long


async def to_graphiti(graphiti: Any, chunks: AsyncIterator[Chunk]) -> None:  # noqa: ANN401 - theirs
    """Add each chunk to a graph, dated by its last message."""
    async for chunk in chunks:
        if said := chunk.messages():
            await graphiti.add_episode(
                name=f"{chunk.session}/{chunk.t}",
                episode_body="\n".join(f"{it.role}: {it.content}" for it in said),
                source_description="transcript of an agent",
                reference_time=said_at(said),
            )


async def to_mem0(memory: Any, chunks: AsyncIterator[Chunk], user_id: str) -> None:  # noqa: ANN401
    """Add each chunk to a user's memories, the session as the run."""
    async for chunk in chunks:
        if said := [it for it in chunk.messages() if it.role in _SPEAKERS]:
            await memory.add(
                [{"role": it.role, "content": it.content} for it in said],
                user_id=user_id,
                run_id=chunk.session,
                metadata={"t": chunk.t, "said_at": said_at(said).isoformat()},
            )


def said_at(said: list[Message]) -> datetime:
    """Return when the last of some messages was said."""
    return next((it.time for it in reversed(said) if it.time), datetime.now(UTC))
