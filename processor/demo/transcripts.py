"""Made transcripts of coding agents, in the shapes and sizes that real ones have.

Three shapes: ``pi`` and ``codex`` name the session on the first line only; ``claude`` names it on
most lines, but not on its ``file-history-snapshot`` lines. All text and every identifier is made
up. What real transcripts hold and tidy test data lacks is here on purpose: empty texts, lines
dated before the line above them, tool output of up to 200 KB, CJK, emoji, U+2028 inside strings,
and escaped lone surrogates.

A pool of turns is made once for each shape; a session is a walk through the pool with its own name
and times written in, so that a line costs a few microseconds.
"""

import functools
import itertools
import json
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from processor.demo.transcript_shapes import (
    SESSION_MARK,
    SHAPES,
    TIME_MARK,
    TIME_MS_MARK,
    encode,
)

TURNS_IN_POOL: Final = 400
FIRST_TIME_MS: Final = 1_764_000_000_000


def session_lines(session: str, seed: int, *, shape: str) -> Iterator[bytes]:
    """Make one session's transcript, line by line and without end.

    Args:
        session: The session's name, as its lines give it.
        seed: The same seed, session and shape give the same lines.
        shape: A key of ``SHAPES``.

    Yields:
        JSON lines without the line break, most of them different from each other.
    """
    rng = _rng(shape, session, seed)
    pool, late_share = _pool(shape), SHAPES[shape].late_share
    name = json.dumps(session)[1:-1].encode()
    now_ms = FIRST_TIME_MS + rng.randrange(10**9)
    walk = itertools.chain(
        rng.choice(pool.firsts),
        itertools.chain.from_iterable(rng.choice(pool.turns) for _ in itertools.count()),
    )
    for line in walk:
        now_ms += 1 + int(rng.expovariate(1 / 3_000))
        is_late = rng.random() < late_share
        at_ms = now_ms - rng.randrange(3_000, 300_000) if is_late else now_ms
        stamp = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        yield (
            line.replace(SESSION_MARK.encode(), name)
            .replace(TIME_MARK.encode(), f"{stamp[:-6]}Z".encode())
            .replace(b"%d" % TIME_MS_MARK, b"%d" % at_ms)
        )


def transcripts(
    count: int, seed: int, *, sessions: int = 41, max_line_bytes: int | None = None
) -> Iterator[tuple[str, bytes]]:
    """Make ``count`` lines of many sessions at once, interleaved as producers would send them.

    Args:
        count: How many lines.
        seed: The same arguments give the same lines.
        sessions: How many sessions; some are several times as long as others.
        max_line_bytes: Leave out longer lines (none are cut); ``None`` keeps all.

    Yields:
        Pairs of session name (a UUID) and line.
    """
    rng = _rng("transcripts", seed)
    shapes = rng.choices(
        list(SHAPES), weights=[shape.share for shape in SHAPES.values()], k=sessions
    )
    names = [str(uuid.UUID(int=rng.getrandbits(128), version=4)) for _ in range(sessions)]
    sources = [
        session_lines(name, seed, shape=shape) for name, shape in zip(names, shapes, strict=True)
    ]
    lengths = [rng.lognormvariate(0, 0.6) for _ in range(sessions)]
    for at in rng.choices(range(sessions), weights=lengths, k=count):
        line = next(
            line for line in sources[at] if max_line_bytes is None or len(line) <= max_line_bytes
        )
        yield names[at], line


def _rng(*parts: object) -> random.Random:
    return random.Random(" ".join(map(str, parts)))  # noqa: S311 - made data, nothing secret


@dataclass(frozen=True, slots=True)
class _Pool:
    firsts: tuple[tuple[bytes, ...], ...]
    turns: tuple[tuple[bytes, ...], ...]


@functools.cache
def _pool(shape: str) -> _Pool:
    rng, made = _rng("pool", shape), SHAPES[shape]
    firsts = tuple((encode(made.first(rng)),) for _ in range(8))
    turns = tuple(tuple(map(encode, made.turn(rng))) for _ in range(TURNS_IN_POOL))
    return _Pool(firsts, turns)
