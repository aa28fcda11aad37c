"""Values with defaults for all that a test isn't about."""

import asyncio
from collections.abc import Iterable, Sequence

from processor.core.chunks import Chunk
from processor.core.policy import ChunkPolicy
from processor.core.records import Headers, Record
from processor.streaming import chunks
from processor.testing import VecSource
from processor.wire import ChunkEncoder, read_value


class WordCounter:
    """The stub counter: a token for every word, so that a test writes the tokens it means."""

    name = "words"

    def count(self, text: str) -> int:
        return len(text.split())


def record(
    tokens: int = 1, *, session: str = "s1", offset: int | None = None, at_s: float | None = None
) -> Record:
    """A record of ``tokens`` words, told apart by its offset; 0 is an empty text."""
    words = " ".join([f"w{offset}"] * tokens)
    return Record(
        session,
        words.encode(),
        max(tokens, 1),
        offset,
        None if at_s is None else round(at_s * 1000),
    )


def records(tokens: Iterable[int], *, session: str = "s1") -> list[Record]:
    """Records of these sizes, a second apart, at offsets from 0."""
    return [record(n, session=session, offset=i, at_s=i) for i, n in enumerate(tokens)]


def chunk_all(items: Iterable[Record], policy: ChunkPolicy) -> list[Chunk]:
    """Chunk a stream through the public path."""

    async def collect() -> list[Chunk]:
        return [chunk async for chunk in chunks(VecSource(items), policy, WordCounter())]

    return asyncio.run(collect())


def chunk_lines(*texts: bytes, session: str = "s", max_tokens: int = 2) -> list[bytes]:
    """Encoded chunks of records with these values, each a token."""
    policy = ChunkPolicy(max_tokens=max_tokens)
    encode = ChunkEncoder(policy, "words", "records", 0).encode
    found = chunk_all(told_records(*texts, session=session), policy)
    return [encode(it) for it in found]


def chunk_document(**fields: object) -> dict[str, object]:
    """A chunk as its JSON says it, made up: its digests are those of nothing."""
    chunk = {
        "schema_version": 1,
        "session": "s",
        "t": 1,
        "records": [
            {"offset": 40, "timestamp_ms": 1, "token_count": 1037, "text": "secret \u2028 ü"}
        ],
        "token_count": 1037,
        "token_counter": "chars_over_four",
        "max_tokens": 5000,
        "over_budget": False,
        "policy": {
            "flush_tokens": 5000,
            "idle_s": 300,
            "max_age_s": 0,
            "max_chunk_bytes": 900000,
            "max_chunk_records": 10000,
        },
        "flush": "tokens",
        "final": False,
        "source": {"topic": "records", "partition": 3, "first_offset": 40, "last_offset": 41},
        "previous_digest": "00",
        "digest": "11",
    }
    return chunk | fields


def told_records(*texts: bytes, session: str = "s", headers: Headers = ()) -> list[Record]:
    """Records with these values, a second apart, at offsets from 0."""
    return [
        Record(session, it, 1, i, 1000 * i, carried=read_value(it)[1], headers=headers)
        for i, it in enumerate(texts)
    ]


def values(items: Iterable[Chunk | Record]) -> list[bytes]:
    """The bytes of the records, in order, whether chunked or not."""
    flat: Sequence[Record] = [
        one for item in items for one in (item.records if isinstance(item, Chunk) else (item,))
    ]
    return [one.value for one in flat]
