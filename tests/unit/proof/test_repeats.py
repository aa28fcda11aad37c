"""What a worker may leave out, found anew from the log; what it may not is missing."""

import pytest

from processor.core.policy import ChunkPolicy
from processor.proof.message import Starts
from processor.proof.report import FaultKind
from tests.history import chunks_of, log_of
from tests.unit.proof.verifying import faults, verify

POLICY = ChunkPolicy(10, deduplicate_records=3)


def sent(*items):
    """A log whose items are written ``session:text#id``."""
    texts, _, names = zip(*(item.partition("#") for item in items), strict=True)
    return [
        it._replace(headers=(("record-id", name.encode()),) if name else ())
        for it, name in zip(log_of(*texts), names, strict=True)
    ]


LOG = sent(
    "a:1#1", "b:1#1", "a:2#2", "a:1#1", "a:3", "b:1", "b:1#1", "a:4#4", "a.", "a:4#4", "a.", "b."
)


def test_what_is_left_out_is_counted_and_nothing_is_missing():
    report = verify(LOG, chunks_of(LOG, POLICY), recompute=True)
    assert report.is_clean
    assert (report.record_count, report.chunked_count, report.duplicate_count) == (9, 7, 2)
    assert "beside: 2 duplicates left out, by record-id" in report.lines()
    assert report.as_json()["duplicate_count"] == 2


@pytest.mark.parametrize(("at", "kind"), [(4, "MISSING"), (5, "MISSING"), (6, "END")])
def test_a_record_left_out_that_repeats_none_is_a_fault(at, kind):
    """Two without an id; one whose id stood farther back than the policy says, before an end."""
    without = [it for it in LOG if it.offset != at]
    assert faults(LOG, chunks_of(without, POLICY)) == {kind: 1}


def test_a_record_that_should_have_been_left_out_is_repeated():
    plain = chunks_of(LOG, ChunkPolicy(10))
    claimed = [
        it._replace(
            value=it.value.replace(b'_records":10000', b'_records":10000,"deduplicate_records":3')
        )
        for it in plain
    ]
    report = verify(LOG, claimed, recompute=True)
    assert report.faults[FaultKind.REPEATED] == 2
    assert "repeats the record-id of offset 0" in report.first[FaultKind.REPEATED].what
    assert report.faults[FaultKind.DIFFERENT] > 0


def test_nothing_may_be_left_out_where_no_policy_says_so():
    kept = chunks_of(LOG, POLICY)
    silent = [it._replace(value=it.value.replace(b',"deduplicate_records":3', b"")) for it in kept]
    assert faults(LOG, silent)["MISSING"] >= 1


def test_what_repeats_a_record_that_retention_has_deleted_is_not_missing():
    left = [it for it in LOG if it.offset >= 2]
    report = verify(left, chunks_of(LOG, POLICY), starts=Starts(records=2), recompute=True)
    assert report.is_clean, report.lines()
    assert report.duplicate_count == 2
    assert report.not_recomputed_count > 0


def test_an_end_behind_a_record_that_an_earlier_policy_left_out_closes_an_empty_chunk():
    """Symptom: "nothing in the log closes a chunk here", once a window had been made smaller.

    What stands between the chunk before and the end was judged by the later policy alone.
    """
    log = sent("b:" + "x" * 50 + "#2", "a:" + "x" * 50 + "#1", "a:1#1", "a.", "b.")
    left_out = chunks_of(log, POLICY)
    plain = chunks_of([it for it in log if it.offset != 2], ChunkPolicy(10))
    assert len(left_out) == len(plain) == 4
    for size in (1, 9):
        report = verify(log, [*left_out[:2], *plain[2:]], size=size, recompute=True)
        assert report.is_clean, report.lines()
        assert report.recomputed_count == 4


def test_what_only_a_policy_without_a_chunk_left_out_is_missing_and_told_so():
    log = sent("a:" + "x" * 50 + "#1", "a:1#1", "a:" + "x" * 50)
    report = verify(log, chunks_of([log[0], log[2]], ChunkPolicy(10)))
    (found,) = report.first.values()
    assert found.kind is FaultKind.MISSING
    assert "it repeats the record-id of offset 0" in found.what
