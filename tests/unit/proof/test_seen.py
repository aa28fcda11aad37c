import json
from hashlib import sha256

import pytest

from processor.proof.report import FaultKind
from tests.history import chunks_of, log_of
from tests.unit.proof.verifying import CHUNKS, LOG, edited, faults, resealed, verify


@pytest.mark.parametrize("value", [None, b"", b"{}", b"not json", b"\xff", CHUNKS[0].value + b"}"])
def test_message_that_is_no_chunk_is_malformed(value):
    report = verify(chunks=[*CHUNKS, CHUNKS[0]._replace(offset=6, value=value)])
    assert report.faults == {FaultKind.MALFORMED: 1}
    assert str(report.first[FaultKind.MALFORMED]).startswith("chunks[0]@6: not a chunk: ")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"schema_version":1', b'"schema_version":2'),
        (b'"offset":0', b'"offset":null'),
        (b'"text":"one"', b'"base64":"*"'),
        (b'"text":"one"', b'"base64":"one"'),
        (b',"text":"one"', b""),
        (b'"text":"one"', b'"headers":{"user":{"base64":"*"}},"text":"one"'),
        (b'"previous_digest":"', b'"previous_digest":"x'),
    ],
)
def test_chunk_that_is_not_of_its_form_is_malformed(old, new):
    report = verify(chunks=edited(0, old, new))
    assert report.faults[FaultKind.MALFORMED] == 1
    assert "not a chunk: " in str(report.first[FaultKind.MALFORMED]) or b"version" in old


@pytest.mark.parametrize(
    "fields",
    [{"key": b"b"}, {"key": None}, {"headers": ()}, {"headers": CHUNKS[2].headers}],
)
def test_chunk_under_another_key_or_header_is_malformed(fields):
    assert faults(chunks=edited(0, **fields)) == {"MALFORMED": 1}


def test_chunk_without_a_session_is_malformed():
    (chunk,) = chunks_of(log_of("a."))
    nobody = chunk._replace(value=chunk.value.replace(b'"session":"a"', b'"session":""'))
    assert faults([], [nobody]).keys() == {"MALFORMED"}


def test_source_offsets_that_are_not_its_records_are_malformed():
    assert faults(chunks=edited(0, b'"last_offset":2', b'"last_offset":3')) == {"MALFORMED": 1}


def omitted(old=b"", new=b""):
    chunks = chunks_of(LOG, omit=(4,))
    assert b"too_large" in chunks[1].value
    chunks[1] = chunks[1]._replace(value=chunks[1].value.replace(old, new))
    return chunks


def test_omitted_record_is_checked_against_the_log():
    assert faults(chunks=omitted()) == {}
    digest = sha256(b"z" * 100).hexdigest().encode()
    assert faults(chunks=omitted(digest, digest[::-1])) == {"ALTERED": 1}
    assert faults(chunks=omitted(b'"bytes":100', b'"bytes":101')) == {"ALTERED": 1}
    assert faults(chunks=omitted(b'"bytes":100,', b"")) == {"MALFORMED": 1}
    other = [it._replace(value=b"y" * 100) if it.offset == 4 else it for it in LOG]
    assert faults(other, omitted()) == {"ALTERED": 1, "DIGEST": 1}


def test_omitted_record_among_others_is_malformed():
    records = json.loads(CHUNKS[0].value)["records"]
    records[0] = {"offset": 0, "token_count": 1, "omitted": "too_large"}
    assert faults(chunks=resealed(0, records=records))["MALFORMED"] >= 1
