"""What a chunk was cut, counted and written by, made again from the chunk itself."""

import base64
from collections.abc import Sequence
from typing import NamedTuple

from processor.core.policy import ChunkPolicy, OrIdle, Tokens
from processor.core.records import Carried, Record
from processor.counters import TokenCounter, count_tokens, counter_named
from processor.headers import chosen_headers, headers_json
from processor.proof.rules import Logged
from processor.proof.seen import Scope, Seen
from processor.wire import ChunkEncoder, WireBytes, WireChunk, WirePolicy, read_value


class Rule(NamedTuple):
    """What a chunk was cut, counted and written by."""

    policy: ChunkPolicy
    counter: TokenCounter
    encoder: ChunkEncoder

    def records(self, session: str, messages: Sequence[Logged]) -> list[Record]:
        """Return messages of a session as the core takes them; what an end gives counts nothing."""
        return counted_records(session, messages, self.policy, self.counter)


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
    for it, value in zip(seen.chunk.records, seen.values, strict=True):
        headers = tuple((name, _header_bytes(at)) for name, at in it.headers.items())
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


def _header_bytes(value: str | WireBytes | None) -> bytes | None:
    if isinstance(value, WireBytes):
        return base64.b64decode(value.encoded)
    return None if value is None else value.encode()
