"""Some dozens of records looked at together: what they weigh, and how a chunk will carry them.

What ``wire.read_naming`` finds of one value, of many at once. Nearly all blocks are plain, every
value of them strict JSON on one line; for these each question is one call of C's, or one loop,
over the whole block. A block with anything else in it is read value by value.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from processor.core.records import Carried
from processor.counters import TokenCounter, count_tokens, texts_of
from processor.nesting import are_shallow
from processor.wire import RECORD_BYTES, find_names, read_naming

# As numbers: looking for one in bytes is a memchr, looking for bytes takes five times as long.
_LF, _CR = b"\n\r"


class Read(NamedTuple):
    """What has to be known of records, in columns.

    Attributes:
        token_counts: Their tokens, each at least 1.
        carried: How a chunk carries them.
        sizes: The bytes that they take there at most.
        named: The sessions that they name in a field of their own; empty where they name none.
    """

    token_counts: list[int]
    carried: list[Carried]
    sizes: list[int]
    named: list[str]

    def add(self, values: Sequence[bytes], counter: TokenCounter, max_tokens: int) -> None:
        """Look at a block of values, whose texts live no longer than this takes.

        Args:
            values: The bytes of records.
            counter: Counts their tokens.
            max_tokens: Budget of a chunk, see ``count_tokens``.
        """
        texts, carried, sizes, named = _plain(values, counter) or zip(
            *map(read_naming, values), strict=True
        )
        self.token_counts.extend(count_tokens(counter, texts, max_tokens))
        self.carried.extend(carried)
        self.sizes.extend(sizes)
        self.named.extend(named)

    def part(self, rows: slice) -> "Read":
        """Return what was read of some of the records."""
        return Read(self.token_counts[rows], self.carried[rows], self.sizes[rows], self.named[rows])


#: Texts, or for a counter of lengths what is as long; then as in ``Read``.
_Plain = tuple[list[Any], list[Carried], list[int], list[str]]


def _plain(values: Sequence[bytes], counter: TokenCounter) -> _Plain | None:
    """Return what ``read_naming`` finds of each where all are plain, else ``None``."""
    try:
        texts = texts_of(counter, values)
        found = list(map(find_names, values))
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError):
        return None
    for value in values:
        # msgspec passes over line breaks and outer white space; strip() returns what has none.
        if _LF in value or _CR in value or value.strip(b" \t") is not value:
            return None
    if not are_shallow(values):
        return None
    return (
        texts,
        [Carried.VALUE] * len(values),
        [RECORD_BYTES + len(it) for it in values],
        [it.sessionId or it.session_id or it.conversation_id or "" for it in found],
    )
