"""Other partitioners than ours, told by where they put keys."""

from collections.abc import Callable, Collection
from typing import Final

from processor.kafka.partitioner import crc32, partitioner

#: A name is only given where chance would give it less than once in a thousand.
_CHANCE: Final = 0.001
_INT32: Final = 1 << 31
Choice = Callable[[bytes], int]


def fnv1a(count: int) -> Choice:
    """Return Sarama's default, librdkafka's ``fnv1a_random`` (its ``rdfnv1a.c``)."""

    def choose(key: bytes) -> int:
        found = 0x811C9DC5
        for byte in key:
            found = (found ^ byte) * 0x01000193 & 0xFFFFFFFF
        return (found if found < _INT32 else (1 << 32) - found) % count

    return choose


#: Who puts a key elsewhere than ``kafka/partitioner.py``; librdkafka's in its own words.
_OTHERS: Final = {
    "librdkafka's default (consistent_random)": crc32,
    "Sarama's default, librdkafka's fnv1a_random": fnv1a,
}


def name_of(placed: Collection[tuple[bytes, int]], count: int) -> str | None:
    """Name what has put keys where they are.

    Args:
        placed: Keys, each with its partition; none where we would put it.
        count: Partitions of the topic.

    Returns:
        A partitioner, or ours before partitions were added; ``None`` if none of them explains all
        of ``placed``, or so few are given that chance might.
    """
    candidates = {name: make(count) for name, make in _OTHERS.items()}
    for fewer in range(1, count):
        candidates[f"our own, while the topic had {fewer} partitions"] = partitioner(fewer)
    if len(candidates) * count ** -len(placed) > _CHANCE:
        return None
    return next(
        (
            name
            for name, choose in candidates.items()
            if all(choose(key) == partition for key, partition in placed)
        ),
        None,
    )
