"""Turns transcript lines in Kafka into token-bounded chunks of whole records, exactly once."""

from processor.core.chunks import Chunk, FlushReason
from processor.core.policy import Boundary, ChunkPolicy, FlushTrigger, OrIdle, Tokens
from processor.core.records import Record
from processor.counters import TokenCounter
from processor.counters.chars_over_four import CharsOverFour
from processor.streaming import RecordSource, chunks
from processor.testing import VecSource

__all__ = [
    "Boundary",
    "CharsOverFour",
    "Chunk",
    "ChunkPolicy",
    "FlushReason",
    "FlushTrigger",
    "OrIdle",
    "Record",
    "RecordSource",
    "TokenCounter",
    "Tokens",
    "VecSource",
    "chunks",
]
