import pytest

from processor.doctor.partitioners import fnv1a, name_of
from processor.kafka.partitioner import crc32

KEYS = [f"session-{number}".encode() for number in range(40)]


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        # From librdkafka's own test of rdfnv1a.c.
        (b"kafka", 0xD33C4E1),
        (b"giberish123456789", 0x77A58295),
        (b"1234", 0x23BDD03),
        (b"", 0x7EE3623B),
    ],
)
def test_fnv1a_is_that_of_librdkafka_and_sarama(key, hashed):
    assert fnv1a(1 << 31)(key) == hashed


@pytest.mark.parametrize(("make", "part"), [(crc32, "consistent_random"), (fnv1a, "Sarama")])
def test_partitioner_is_named_by_where_it_puts_keys(make, part):
    assert part in name_of([(key, make(6)(key)) for key in KEYS], 6)


def test_few_keys_name_none():
    assert name_of([(key, crc32(6)(key)) for key in KEYS[:4]], 6) is None


def test_keys_that_no_partitioner_explains_name_none():
    assert name_of([(key, number % 6) for number, key in enumerate(KEYS)], 6) is None
