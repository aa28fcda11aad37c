"""A memory agent: reads the chunks of each session in order, once, and can be killed at any time.

At each chunk the model sees the question, the memory so far and the chunk, and answers with a new
memory and two gates. The memory is replaced only if the *update gate* is open: a chunk without
evidence leaves it as it is. Once the *exit gate* is open, the model knows enough about that
session, and is not asked again.

    python examples/memory_agent.py --folder memories "Who prunes the pear trees?"

Source:
    GRU-Mem, "When to Memorize and When to Stop" (arXiv 2602.10560).
"""

import argparse
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol

from processor.client import Chunk, Position, read_chunks_sync


class Answer(NamedTuple):
    """What the model makes of a chunk.

    Attributes:
        memory: The memory as it would be.
        is_update: The update gate: it is to replace the one before.
        is_exit: The exit gate: enough is known.
    """

    memory: str
    is_update: bool
    is_exit: bool


class Model(Protocol):
    """What a language model is asked, once a chunk."""

    def __call__(self, question: str, memory: str, text: str) -> Answer:
        """Return what it makes of ``text``."""
        ...


@dataclass(frozen=True)
class Mind:
    """What is kept of a session: its memory, and the chunk after which it was so."""

    memory: str = ""
    is_done: bool = False
    position: Position | None = None


class Store:
    """A file for each session, replaced as a whole: memory and position change together.

    Args:
        folder: Where; made if it isn't there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def load(self, session: str) -> Mind:
        """Return what is kept of a session; an empty mind for a new one."""
        path = self._path(session)
        if not path.exists():
            return Mind()
        kept = json.loads(path.read_bytes())
        return Mind(kept["memory"], kept["is_done"], Position(*kept["position"]))

    def save(self, session: str, mind: Mind) -> None:
        """Keep it, or what was there before if we are killed meanwhile."""
        path = self._path(session)
        new = path.with_suffix(".new")
        with new.open("w") as file:
            json.dump({"session": session, **vars(mind)}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)

    def _path(self, session: str) -> Path:
        # A session's name may hold anything, and be longer than a file's may.
        return self._folder / f"{sha256(session.encode()).hexdigest()[:32]}.json"


def remember(chunks: Iterable[Chunk], question: str, model: Model, store: Store) -> None:
    """Take in chunks as they come, each once."""
    for chunk in chunks:
        mind = store.load(chunk.session)
        if not mind.is_done:
            answer = model(question, mind.memory, chunk.text())
            memory = answer.memory if answer.is_update else mind.memory
            mind = replace(mind, memory=memory, is_done=answer.is_exit)
        store.save(chunk.session, replace(mind, position=chunk.position))


def keyword_model(question: str, memory: str, text: str) -> Answer:
    """Stand in for a language model: keep the lines that share a word with the question."""
    words = {it for it in question.lower().split() if len(it) > 3}  # noqa: PLR2004 - not "the"
    found = [it for it in text.splitlines() if words & set(it.lower().split())]
    memory = "\n".join(filter(None, (memory, *found)))
    return Answer(memory, bool(found), words <= set(memory.lower().split()))


def main() -> None:
    """Read from ``KAFKA_BOOTSTRAP_SERVERS``, for ever."""
    parser = argparse.ArgumentParser()
    parser.add_argument("question")
    parser.add_argument("--folder", type=Path, default=Path("memories"))
    parser.add_argument("--group", default="memory-agent")
    given = parser.parse_args()
    store = Store(given.folder)
    chunks = read_chunks_sync(
        group=given.group, after=lambda chunk: store.load(chunk.session).position
    )
    remember(chunks, given.question, keyword_model, store)


if __name__ == "__main__":
    main()
