"""What a chunk was cut, counted and written by, made again from the chunk itself."""

from collections.abc import Sequence
from typing import NamedTuple

from processor.core.policy import ChunkPolicy, OrIdle, Tokens
from processor.core.records import Record
from processor.counters import TokenCounter, count_tokens, counter_named
from processor.headers import chosen_headers, headers_json
from processor.proof.rules import Logged
from processor.proof.seen import Scope
from processor.wire import ChunkEncoder, WireChunk, read_value


class Rule(NamedTuple):
    """What a chunk was cut, counted and written by."""

    policy: ChunkPolicy
    counter: TokenCounter
    encoder: ChunkEncoder

    def records(self, session: str, messages: Sequence[Logged]) -> list[Record]:
        """Return messages of a session as the core takes them; what an end gives counts nothing."""
        read = [read_value(it.value or b"") for it in messages]
        texts = [text for text, _, _ in read]
        counts = count_tokens(self.counter, texts, self.policy.max_tokens)
        made = []
        for logged, tokens, (_, carried, size_bytes) in zip(messages, counts, read, strict=True):
            offset, timestamp_ms, _, value, there, _ = logged
            headers = chosen_headers(there, self.policy.carry_headers)
            size = size_bytes + len(headers_json(headers))
            made.append(
                Record(session, value or b"", tokens, offset, timestamp_ms, size, carried, headers)
            )
        return made


def rule_of(chunk: WireChunk, scope: Scope) -> Rule:
    """Return the rule that a chunk of a partition names.

    Raises:
        ConfigError: It can't be applied here.
    """
    wire = chunk.policy
    policy = ChunkPolicy(
        chunk.max_tokens,
        flush=OrIdle(wire.idle_s) if wire.idle_s else Tokens(wire.flush_tokens),
        max_age_s=wire.max_age_s,
        max_chunk_bytes=wire.max_chunk_bytes,
        max_chunk_records=wire.max_chunk_records,
        deduplicate_records=wire.deduplicate_records,
        carry_headers=wire.carry_headers,
        forget_ended_after_s=wire.forget_ended_after_s,
    )
    encoder = ChunkEncoder(policy, chunk.token_counter, scope.topics.records, scope.partition)
    return Rule(policy, counter_named(chunk.token_counter), encoder)
