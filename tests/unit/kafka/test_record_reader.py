import pytest
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from processor.kafka.record_reader import TotalRecords

ODD = "odd name"
RECORDS = [
    (b"k", b"v", [(ODD, b"1"), ("event-time", b"\xff"), ("n", None)]),
    (None, b"\xfe" * 300, []),
    (b"k", None, [(ODD, b"")]),
    (b"", b"", [("\u00fc", b"2")]),
]


def fetched(records, codec=0, *, first_offset=0):
    """One batch as a broker gives it; a name ODD becomes bytes that are no UTF-8."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=1,
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        batch_size=1 << 20,
    )
    for offset, (key, value, headers) in enumerate(records):
        builder.append(offset, 1000 + offset, key, value, headers)
    data = bytearray(builder.build()).replace(ODD.encode(), b"\xff" * len(ODD))
    data[:8] = first_offset.to_bytes(8, "big")
    return bytes(data)


def read(data, kind=TotalRecords):
    batches, found = kind(data), []
    while batches.has_next():
        batch = batches.next_batch()
        found += [
            (it.offset, it.timestamp, it.timestamp_type, it.key, it.value, list(it.headers))
            for it in batch
        ]
        assert (batch.producer_id, batch.is_transactional) == (7, True)
        assert batch.next_offset == found[-1][0] + 1
    return found


def test_a_headers_name_that_is_not_utf8_holds_nothing_up():
    data = fetched(RECORDS) + fetched(RECORDS[1:2], first_offset=4)
    with pytest.raises(UnicodeDecodeError):
        read(data, MemoryRecords)
    plain = [(0, 1000), (1, 1001), (2, 1002), (3, 1003), (4, 1000)]
    names = [
        [(name.replace(ODD, "\ufffd" * len(ODD)), it) for name, it in row[2]] for row in RECORDS
    ]
    assert read(data) == [
        (offset, at_ms, 0, key, value, headers)
        for (offset, at_ms), (key, value, _), headers in zip(
            plain, [*RECORDS, RECORDS[1]], [*names, []], strict=True
        )
    ]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_batch_that_is_damaged_raises_the_one_error_that_all_readers_know(codec):
    """A codec's own error ended a worker as something that nobody had expected."""
    data = bytearray(fetched(RECORDS, codec))
    data[61:] = b"\x00" * (len(data) - 61)  # behind the batch's header
    with pytest.raises(CorruptRecordException, match="damaged"):
        read(bytes(data))


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_all_else_is_read_as_aiokafka_reads_it(codec):
    data = fetched([it for it in RECORDS if ODD not in dict(it[2])] * 50, codec)
    assert read(data) == read(data, MemoryRecords)
