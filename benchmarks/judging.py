"""What must come out of a topic, worked out from its log alone, and whether it did.

The worker's chunks are judged by the tests' oracle; this is for the peers, whose chunks hold lines
and little else, and for the pass-throughs.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from benchmarks.peers.chunking import MAX_TOKENS, chunk_of, tokens_of
from tests.e2e.log_reading import Message


@dataclass(frozen=True, slots=True)
class Expected:
    """What must come out of a log: of each session the chunks that are closed, in order."""

    digests: Mapping[bytes, list[bytes]]
    closed_by: Mapping[bytes, list[int]]
    """The offset of the record that closed each, which is the first one of the next chunk."""

    sums: Mapping[int, str]
    """A digest of each partition's lines, each with a line break."""

    @property
    def chunk_count(self) -> int:
        """Return how many chunks are closed in all sessions together."""
        return sum(map(len, self.digests.values()))


@dataclass(slots=True)
class _Open:
    t: int = 1
    tokens: int = 0
    lines: list[bytes] = field(default_factory=list)


def expected_of(records: Iterable[Message]) -> Expected:
    """Cut every session's records at the budget.

    Args:
        records: All messages of the topic, those of one partition in offset order.
    """
    digests: dict[bytes, list[bytes]] = defaultdict(list)
    closed_by: dict[bytes, list[int]] = defaultdict(list)
    held: dict[bytes, _Open] = defaultdict(_Open)
    for record in records:
        session, line = record.key or b"", record.value or b""
        tokens = tokens_of(line)
        chunk = held[session]
        if chunk.lines and chunk.tokens + tokens > MAX_TOKENS:
            digests[session].append(_digest(chunk_of(session, chunk.t, chunk.lines)))
            closed_by[session].append(record.offset)
            chunk = held[session] = _Open(chunk.t + 1)
        chunk.tokens += tokens
        chunk.lines.append(line)
    return Expected(digests, closed_by, sums_of(records))


def sums_of(messages: Iterable[Message]) -> dict[int, str]:
    """Return a digest of each partition's lines: blobs joined by line breaks give the same."""
    seen: dict[int, hashlib._Hash] = {}
    for each in messages:
        seen.setdefault(each.partition, hashlib.sha256()).update((each.value or b"") + b"\n")
    return {partition: whole.hexdigest() for partition, whole in seen.items()}


def faults_of(expected: Expected, chunks: Iterable[Message]) -> Counter[str]:
    """Compare a peer's chunks, in the order in which they came, with what must come out.

    Returns:
        How many are ``wrong`` (of other bytes, out of turn, twice, of no session) or ``missing``.
    """
    faults: Counter[str] = Counter()
    come: Counter[bytes] = Counter()
    for chunk in chunks:
        session, value = chunk.key or b"", chunk.value or b""
        wanted = expected.digests.get(session, [])
        turn = come[session]
        if turn < len(wanted) and wanted[turn] == _digest(value):
            come[session] += 1
        else:
            faults["wrong"] += 1
    faults["missing"] = expected.chunk_count - come.total()
    return +faults


def _digest(value: bytes) -> bytes:
    return hashlib.sha256(value).digest()
