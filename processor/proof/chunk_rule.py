"""What a chunk was cut, counted and written by, made again from the chunk itself."""

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import NamedTuple

from processor.core.policy import ChunkPolicy, OrIdle, Tokens
from processor.core.records import Carried, Headers, Record, new_record
from processor.counters import TokenCounter, count_tokens, counter_named
from processor.headers import chosen_headers, headers_json
from processor.nesting import are_shallow
from processor.proof.rules import Logged
from processor.proof.seen import Scope, Seen
from processor.wire import RECORD_BYTES, ChunkEncoder, read_value
from processor.wire_models import WireChunk, WirePolicy


class Rule(NamedTuple):
    """What a chunk was cut, counted and written by."""

    policy: ChunkPolicy
    counter: TokenCounter
    encoder: ChunkEncoder

    def records(self, session: str, messages: Sequence[Logged]) -> list[Record]:
        """Return messages of a session as the core takes them; what an end gives counts nothing."""
        return counted_records(session, messages, self.policy, self.counter)

    def records_of(self, seen: Seen, messages: Sequence[Logged]) -> list[Record]:
        """Return the messages that a chunk comes from, and maybe more, as the core takes them.

        Where the chunk carries just these bytes as JSON, to decode it has shown that they are, and
        their tokens are counted: that is all there is to know of a record but its depth.
        """
        session, count = seen.chunk.session, len(seen.values)
        own = messages[:count]
        counts = seen.token_counts if [it.value for it in own] == seen.values else None
        values = [it for it in seen.values if it is not None]
        if counts is None or not seen.is_raw or not are_shallow(values):
            return self.records(session, messages)
        sizes: Iterable[int] = [RECORD_BYTES + len(it) for it in values]
        headers: Iterable[Headers] = repeat((), count)
        if self.policy.carry_headers:
            headers = [chosen_headers(it.headers, self.policy.carry_headers) for it in own]
            sizes = [size + len(headers_json(it)) for size, it in zip(sizes, headers, strict=True)]
        offsets, times = [it.offset for it in own], [it.timestamp_ms for it in own]
        of_log = (offsets, times, sizes, repeat(Carried.VALUE, count), headers)
        made = list(
            map(new_record, zip(repeat(session, count), values, counts, *of_log, strict=True))
        )
        return made + self.records(session, messages[count:]) if len(messages) > count else made


def counted_records(
    session: str, messages: Sequence[Logged], policy: ChunkPolicy, counter: TokenCounter
) -> list[Record]:
    """Return messages of a session as the core takes them, cut by a policy and so counted."""
    read = [read_value(it.value or b"") for it in messages]
    texts = [text for text, _, _ in read]
    counts = count_tokens(counter, texts, policy.max_tokens)
    made, names = [], policy.carry_headers
    for logged, tokens, (_, carried, size) in zip(messages, counts, read, strict=True):
        offset, timestamp_ms, _, value, there, _ = logged
        headers = chosen_headers(there, names) if there and names else ()
        size_bytes = size + len(headers_json(headers)) if headers else size
        of_log = (offset, timestamp_ms, size_bytes, carried, headers)
        made.append(Record(session, value or b"", tokens, *of_log))
    return made


def records_in(seen: Seen) -> list[Record]:
    """Return a chunk's records as the core has them; of one that is omitted all but its bytes.

    Raises:
        StateError: One is omitted without its size.
    """
    session, made = seen.chunk.session, []
    for it, value, headers in zip(seen.chunk.records, seen.values, seen.headers, strict=True):
        if value is None:
            # No topic takes what is not above the policy's cap and is refused as too large.
            size = max(seen.omitted().size_bytes, seen.chunk.policy.max_chunk_bytes + 1)
            carried = Carried.BASE64
        else:
            _, carried, size = read_value(value)
        size += len(headers_json(headers))
        of_log = (it.token_count, it.offset, it.timestamp_ms)
        made.append(Record(session, value or b"", *of_log, size, carried, headers))
    return made


def policy_of(chunk: WireChunk) -> ChunkPolicy:
    """Return the policy that a chunk names.

    Raises:
        ConfigError: There can't be such a policy.
    """
    named = {it: getattr(chunk.policy, it) for it in WirePolicy.__struct_fields__}
    flush_tokens, idle_s = named.pop("flush_tokens"), named.pop("idle_s")
    flush = OrIdle(idle_s) if idle_s else Tokens(flush_tokens)
    return ChunkPolicy(chunk.max_tokens, flush=flush, **named)


def rule_of(chunk: WireChunk, scope: Scope) -> Rule:
    """Return the rule that a chunk of a partition names.

    Raises:
        ConfigError: It can't be applied here.
    """
    policy = policy_of(chunk)
    encoder = ChunkEncoder(policy, chunk.token_counter, scope.topics.records, scope.partition)
    return Rule(policy, counter_named(chunk.token_counter), encoder)
