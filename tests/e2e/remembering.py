"""The memory agent of the examples with a model slow enough to be killed in the middle.

``python -m tests.e2e.remembering FOLDER GROUP``; each question that its model is asked, which is
the text of a chunk, goes to a line of ``asked.txt``.
"""

import sys
import time
from pathlib import Path

from examples.memory_agent import Store, keyword_model, remember
from processor.client import read_chunks_sync


def main(folder: Path, group: str) -> None:
    store = Store(folder)

    def model(question, memory, text):
        with (folder / "asked.txt").open("a") as file:
            file.write(f"{text}\n")
        time.sleep(0.2)
        return keyword_model(question, memory, text)

    chunks = read_chunks_sync(group=group, after=lambda chunk: store.load(chunk.session).position)
    remember(chunks, "are pear7 pear9", model, store)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
