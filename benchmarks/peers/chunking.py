"""The job that every peer does, so that their outputs are one: bytes in, bytes out.

A session's lines, in order, fill a chunk until the next one would bring it above the budget; what
comes out is the lines as they came, spliced into a JSON array. Only the standard library: each peer
runs in an environment of its own.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

MAX_TOKENS: Final = 5_000


class Job(NamedTuple):
    """What a peer is told on its command line."""

    bootstrap: str
    records_topic: str
    out_topic: str
    group: str
    commit_interval_s: float
    state_dir: Path
    """Not there yet."""


def job_of(arguments: list[str]) -> Job:
    """Read a peer's command line, or end it with the usage."""
    if len(arguments) != len(Job._fields):
        sys.exit(f"usage: {' '.join(Job._fields)}")
    bootstrap, records_topic, out_topic, group, commit_interval_s, state_dir = arguments
    return Job(
        bootstrap, records_topic, out_topic, group, float(commit_interval_s), Path(state_dir)
    )


def tokens_of(line: bytes) -> int:
    """Return a quarter of the line's characters, rounded up, and at least 1."""
    return max(1, (len(line.decode()) + 3) // 4)


def head_of(session: bytes, t: int) -> bytes:
    """Return how a chunk begins, up to its first line."""
    return b'{"session":%b,"t":%d,"records":[' % (json.dumps(session.decode()).encode(), t)


def chunk_of(session: bytes, t: int, lines: Iterable[bytes]) -> bytes:
    """Return a whole chunk."""
    return head_of(session, t) + b",".join(lines) + b"]}"
