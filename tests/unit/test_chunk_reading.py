"""The oracle's reading of one chunk: every value to the byte, and nothing that is none."""

import pytest

from tests.e2e.chunk_reading import ChunkError, read_chunk
from tests.unit.sound_chunks import S1, chunked, log, rewritten


def test_values_come_back_byte_for_byte():
    values = [
        b'{"b": [1.0, "}],{", 1e2],  "a": "\\u00e9 \\" \\\\"}',
        b'"\xe2\x80\xa8 \xc2\x85"',
        b"-0.0",
        b"[[], {}, [[[]]]]",
        b"1" * 5_000,
        b'{"base64":1,"base64":2}',
        b'"\\ud83d\\ude80"',
    ]
    records = log(*[(S1, value) for value in values])
    [made] = chunked([*records, "idle"])
    assert made.value.count(b'"value":') == len(values)
    assert [each.value for each in read_chunk(made.value).records] == values


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'{"a": 1}', b'{"a": NaN}'),
        (b'{"a": 1}', b'{"a": "\\ud83d"}'),
        (b'{"a": 1}', b"[" * 61 + b"]" * 61),
        (b'{"a": 1}', b"[" * 100_000 + b"]" * 100_000),
        (b'{"a": 1}', b'{"a": 1},"text":"b"'),
        (b'"value":', b'"valve":'),
        (b'"t": 1', b'"t": 1, "t": 1'),
        (b'"t": 1', b'"t": true'),
        (b'"t": 1', b'"t":\n1'),
        (b'"final": false', b'"final": true'),
        (b'"first_offset": 0', b'"first_offset": 1'),
        (b'"token_count": 2', b'"token_count": 3'),
        (b'"schema_version": 1', b'"schema_version": 2'),
        (b"]}", b"]},"),
        (b"]}", b"]"),
    ],
)
def test_what_a_strict_reader_refuses_is_refused(old, new):
    [made] = chunked([*log((S1, b'{"a": 1}')), "idle"])
    read_chunk(made.value)
    with pytest.raises(ChunkError):
        read_chunk(rewritten(made, old, new).value)


def test_a_value_of_sixty_levels_is_read():
    deep = b"[" * 60 + b"]" * 60
    [made] = chunked([*log((S1, deep)), "idle"])
    assert read_chunk(made.value).records[0].value == deep
