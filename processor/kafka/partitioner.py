"""Which partition a key belongs to."""

import zlib
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from aiokafka.partitioner import DefaultPartitioner

#: Keys whose partition is remembered: the hash is Python, and costs 10 µs.
_REMEMBERED: Final = 1 << 16


def partitioner(count: int) -> Callable[[bytes], int]:
    """Return what gives a key's partition of ``count``: murmur2, as Java's client and aiokafka.

    So who writes to the topic with one of those, and we, put a session into the same partition.
    """
    hashed = DefaultPartitioner()
    partitions = list(range(count))

    @lru_cache(_REMEMBERED)
    def partition_of(key: bytes) -> int:
        partition: int = hashed(key, partitions, partitions)
        return partition

    return partition_of


def crc32(count: int) -> Callable[[bytes], int]:
    """Return librdkafka's default (``consistent_random``), which puts keys elsewhere."""
    return lambda key: zlib.crc32(key) % count
