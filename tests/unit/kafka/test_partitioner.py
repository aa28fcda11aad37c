import pytest

from processor.kafka.partitioner import crc32, partitioner

#: Hashes that Kafka's own tests expect of its Java client.
JAVA = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("count", [1, 4, 7, 1000])
def test_session_has_the_partition_that_java_s_client_gives_it(count):
    partition_of = partitioner(count)
    for key, hashed in JAVA.items():
        expected = (hashed & 0x7FFFFFFF) % count
        assert partition_of(key) == partition_of(key) == expected


def test_crc32_is_the_usual_one():
    assert crc32(1 << 32)(b"123456789") == 0xCBF43926
