import json

from processor.proof.message import Starts
from tests.history import chunks_of, log_of
from tests.unit.proof.verifying import CHUNKS, LOG, edited, faults, verify


def test_chunks_whose_records_retention_has_deleted_are_checked_by_themselves():
    log = [it for it in LOG if it.offset >= 5]
    starts = Starts(records=5)
    report = verify(log, starts=starts)
    assert report.is_clean, report.lines()
    assert report.record_gone_count == 5
    assert faults(log, edited(1, b'"zzz', b'"zzy'), starts=starts) == {"DIGEST": 1}
    assert "records in chunks that retention has deleted" in "".join(report.lines())


def test_records_whose_chunks_retention_has_deleted_can_not_be_judged():
    report = verify(chunks=CHUNKS[3:], starts=Starts(chunks=3), processed=len(LOG))
    assert report.is_clean, report.lines()
    assert report.chunk_gone_count == 5
    alone = verify(chunks=CHUNKS[5:], starts=Starts(chunks=5), processed=len(LOG))
    assert alone.is_clean, alone.lines()
    assert faults(chunks=CHUNKS[4:], starts=Starts(chunks=4)) == {}


def test_end_may_be_the_second_of_two_where_retention_has_deleted_the_first():
    log = log_of("a:1", "a.", "a.", "a:2", "a:" + "x" * 40)
    chunks = chunks_of(log)
    assert faults(log[2:], chunks, starts=Starts(records=2), processed=9) == {}
    assert faults(log[2:], chunks[1:], starts=Starts(records=2), processed=9)["GAP"] == 1


def test_end_that_a_final_chunk_tells_of_may_be_deleted():
    log = log_of("b:1", "b:2", "a:1", "a.", *["b:" + "x" * 40] * 2, "a:2", "a:" + "x" * 40)
    chunks = chunks_of(log)
    a_final, *others = chunks
    late = [*others[:2], a_final, *others[2:]]  # the log is read beyond the end when it comes
    for made in (chunks, late):
        for size in (1, 9):
            assert faults(log[4:], made, starts=Starts(records=4), size=size) == {}
    kept = [it for it in log if it.value is not None]
    assert faults(kept[2:], chunks, starts=Starts(records=2)) == {"END": 1}


def test_first_record_that_is_left_must_be_there():
    log = log_of("b:1", "a:1", "a:" + "x" * 40)
    assert faults(log[2:], chunks_of(log), starts=Starts(records=2)) == {}
    assert faults(log[2:], chunks_of(log), starts=Starts(records=1))["ALTERED"] == 1


def test_first_chunk_that_is_left_may_be_the_first_of_its_session():
    (chunk,) = chunks_of(log_of("a:1", "a."))
    digest = json.loads(chunk.value)["previous_digest"].encode()
    spoiled = chunk._replace(value=chunk.value.replace(digest, digest[::-1]))
    log = log_of("a:1", "a.")
    assert faults(log, [chunk], starts=Starts(chunks=9)) == {}
    assert faults(log, [spoiled], starts=Starts(chunks=9)) == {"DIGEST": 1}
    before = [*log_of("a:0"), *(it._replace(offset=it.offset + 1) for it in log)]
    late = chunks_of(before[1:])
    assert faults(before, late, starts=Starts(chunks=9)) == {"MISSING": 1}
