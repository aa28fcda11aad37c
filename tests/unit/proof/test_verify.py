import asyncio
import json
import re
from hashlib import sha256

import pytest
from hypothesis import given

from processor.proof.message import ALONE
from processor.proof.report import FaultKind, Report
from processor.proof.seen import Seen
from processor.proof.verify import PartitionProof, SplitSessions, prove_partition
from tests.history import Message, chunks_of, log_of
from tests.strategies import logs, policies
from tests.unit.proof.verifying import CHUNKS, LOG, TOPICS, at, edited, faults, resealed, verify


def test_history_of_these_tests_holds_what_they_need():
    found = [json.loads(it.value) for it in CHUNKS]
    assert [(it["session"], it["t"], it["flush"], len(it["records"])) for it in found] == [
        ("a", 1, "tokens", 2),
        ("a", 2, "oversize", 1),
        ("b", 1, "end", 2),
        ("b", 2, "tokens", 1),
        ("b", 3, "end", 1),
        ("a", 3, "tokens", 3),
    ]


@pytest.mark.parametrize("size", [1, 2, 100])
def test_clean_history_is_verified(size):
    report = verify(size=size)
    assert report.is_clean
    assert report.summary() == (
        "verified: 11 records in 2 sessions -> 6 chunks; 0 missing, 0 repeated, 0 out of order, "
        "1 open"
    )
    assert report.lines()[-1] == report.summary()


@given(logs(), policies)
def test_whatever_core_and_wire_make_of_a_log_is_verified(items, policy):
    log = [
        Message(it.offset, it.session.encode(), None if is_end else it.value, it.timestamp_ms or 0)
        for it, is_end in items
    ]
    middle = log[len(log) // 2].offset if log else None
    chunks = chunks_of(log, policy, clock_after=middle)
    report = verify(log, chunks, processed=1 << 40)
    assert report.is_clean, report.lines()
    joined = sum(len(json.loads(it.value)["records"]) for it in chunks)
    assert report.record_count == joined + report.open_count


def test_record_left_out_of_its_chunk_is_missing():
    middle = json.loads(CHUNKS[at(b"a", 1)].value)["records"]
    chunks = resealed(at(b"a", 1), records=middle[1:], token_count=8)
    assert faults(chunks=chunks)["MISSING"] == 1
    assert verify(chunks=chunks).first[FaultKind.MISSING].offset == 0


def test_chunk_left_out_is_missing_and_a_gap():
    found = faults(chunks=[it for it in CHUNKS if it is not CHUNKS[at(b"a", 2)]])
    assert found == {"MISSING": 1, "GAP": 1, "DIGEST": 1}


def test_first_chunk_left_out_is_missing():
    found = faults(chunks=[it for it in CHUNKS if it is not CHUNKS[at(b"a", 1)]])
    assert found == {"MISSING": 2, "GAP": 1, "DIGEST": 1}


def test_last_chunk_left_out_is_missing_if_the_log_was_processed():
    chunks = [it for it in CHUNKS if it is not CHUNKS[at(b"a", 3)]]
    assert faults(chunks=chunks, processed=len(LOG)) == {"MISSING": 3}
    assert verify(chunks=chunks, processed=len(LOG)).first[FaultKind.MISSING].offset == 5
    assert faults(chunks=chunks) == {}  # perhaps not there yet


def test_record_that_no_rule_lets_be_open_is_missing():
    log = log_of("a:" + "x" * 100, "b:" + "x" * 100)
    assert faults(log, chunks_of(log)[1:], processed=2)["MISSING"] == 1
    assert faults(log, chunks_of(log)[:1], processed=2)["MISSING"] == 1
    assert faults(log, chunks_of(log)[:1], processed=1) == {}  # perhaps not read yet


def test_final_chunk_left_out_is_a_wrong_end():
    chunks = [it for it in CHUNKS if it is not CHUNKS[at(b"b", 3)]]
    assert faults(chunks=chunks, processed=len(LOG)) == {"END": 1, "MISSING": 1}
    assert faults(chunks=chunks, processed=0) == {}  # perhaps not there yet


def test_chunk_twice_is_repeated():
    again = [*CHUNKS[:2], CHUNKS[1], *CHUNKS[2:]]
    assert faults(chunks=again) == {"REPEATED": 1, "GAP": 1, "DIGEST": 1}


def test_record_twice_is_repeated():
    records = json.loads(CHUNKS[at(b"a", 1)].value)["records"]
    chunks = resealed(at(b"a", 1), records=[records[0], *records], token_count=10)
    assert faults(chunks=chunks) == {"REPEATED": 1, "DIGEST": 1}


def test_records_swapped_are_out_of_order():
    records = json.loads(CHUNKS[at(b"a", 1)].value)["records"]
    found = faults(chunks=resealed(at(b"a", 1), records=records[::-1]))
    assert found == {"REORDERED": 1, "DIGEST": 1, "MALFORMED": 1}


def test_chunks_swapped_are_out_of_order():
    one, two = at(b"a", 1), at(b"a", 2)
    chunks = list(CHUNKS)
    chunks[one], chunks[two] = chunks[two], chunks[one]
    found = faults(chunks=chunks)
    assert found["REORDERED"] == 2
    assert "MISSING" not in found


def test_record_with_another_byte_is_altered_and_both_digests_are_shown():
    report = verify(chunks=edited(at(b"a", 2), b'"zzz', b'"zzy'))
    assert report.faults == {FaultKind.ALTERED: 1, FaultKind.DIGEST: 1}
    text = str(report.first[FaultKind.ALTERED])
    assert text.startswith("chunks[0]@1, session a, t=2: the record at offset 4 ")
    assert sha256(b"z" * 100).hexdigest() in text
    assert sha256(b"zzy" + b"z" * 97).hexdigest() in text


def test_record_with_another_time_is_altered():
    chunks = edited(at(b"a", 2), b'"timestamp_ms":1004000', b'"timestamp_ms":1004001')
    assert faults(chunks=chunks) == {"ALTERED": 1}


def test_record_that_the_log_has_not_is_altered():
    log = [it for it in LOG if it.offset != 4]
    assert faults(log)["ALTERED"] == 1


def test_record_of_another_session_is_altered():
    moved = [it._replace(key=b"b") if it.offset == 4 else it for it in LOG]
    assert faults(moved)["ALTERED"] == 1


@pytest.mark.parametrize("t", [1, 3, 0, 9])
def test_wrong_t_is_a_gap(t):
    headers = (*CHUNKS[1].headers[:2], ("ce_id", b"a/%d" % t))
    chunks = edited(at(b"a", 2), b'"t":2', b'"t":%d' % t, headers=headers)
    assert faults(chunks=chunks)["GAP"] in {1, 2}


@pytest.mark.parametrize("field", ["digest", "previous_digest"])
def test_wrong_digest_is_broken(field):
    chunk = json.loads(CHUNKS[at(b"a", 2)].value)
    found = faults(chunks=resealed(at(b"a", 2), **{field: chunk[field][::-1]}))
    assert found.keys() == {"DIGEST"}


def test_digest_of_the_first_chunk_starts_from_the_session():
    other = chunks_of([it._replace(key=b"c") for it in LOG if it.key == b"a"])
    renamed = [
        it._replace(
            key=b"a",
            value=it.value.replace(b'"session":"c"', b'"session":"a"'),
            headers=(*it.headers[:2], ("ce_id", it.headers[2][1].replace(b"c", b"a"))),
        )
        for it in other
    ]
    assert faults([it for it in LOG if it.key == b"a"], renamed) == {"DIGEST": 1}


def test_chunk_of_another_partition_is_on_a_wrong_one():
    chunks = edited(at(b"a", 3), b'"partition":0', b'"partition":1')
    assert faults(chunks=chunks, processed=len(LOG)) == {"PARTITION": 1, "MISSING": 3}
    chunks = edited(at(b"a", 3), b'"topic":"records"', b'"topic":"others"')
    assert faults(chunks=chunks)["PARTITION"] == 1


def test_session_on_two_partitions_is_a_warning():
    report, split = Report(), SplitSessions()
    split.take([b"a\n", b"b"])
    split.take([b"c"])
    split.warn(report)
    assert report.warnings == []
    split.take([b"a\n", b"b", b"c", b"d", b"e"])
    split.take([b"d", b"f"])
    split.warn(report)
    assert re.match(
        r"4 keys are on several partitions.*: 'a\\n', 'b', 'c' and 1 more$", report.warnings[0]
    )


def test_keys_of_a_partition_that_was_proved_before_count():
    report, split = Report(), SplitSessions()
    for keys in ([b"a", b"b"], [b"a"]):
        split.take_known(SplitSessions().take(keys))
    split.warn(report)
    split.take([b"b", b"c"])
    split.warn(report)
    assert report.warnings[0].startswith("1 keys are on several partitions")
    assert report.warnings[0].endswith("their names were not kept")
    assert report.warnings[1].endswith("'b' and 1 more")


def test_one_session_can_be_judged_alone():
    log = log_of(*(f"{it}:{number}" + "x" * 30 for number in range(9) for it in "ab"), "a.", ":")
    chunks = chunks_of(log)
    mine = [it for it in chunks if it.key == b"a"]
    report = verify(log, chunks, letters=[], only="a", recompute=True)
    assert report.is_clean, report.lines()
    assert (report.session_count, report.record_count, report.end_count) == (1, 9, 1)
    assert (report.chunk_count, report.recomputed_count) == (len(mine), len(mine))
    gone = [it for it in chunks if it is not mine[2]]
    assert verify(log, gone, letters=[], only="a").faults[FaultKind.GAP] == 1
    assert verify(log, gone, letters=[], only="b").is_clean


def test_chunks_alone_are_judged_by_their_chain():
    def alone(chunks):
        return verify([], chunks, letters=[], starts=ALONE)

    report = alone(CHUNKS)
    assert report.is_clean, report.lines()
    assert report.record_gone_count == sum(len(Seen(it).values) for it in CHUNKS)
    for gone in range(4):  # the last one of a session is not missed
        assert alone([*CHUNKS[:gone], *CHUNKS[gone + 1 :]]).faults[FaultKind.GAP] == 1
    assert alone(edited(1, b'"zzz', b'"zzy')).faults[FaultKind.DIGEST] == 1
    assert alone([*CHUNKS[:1], *CHUNKS]).faults[FaultKind.REPEATED] > 0


def test_log_is_read_no_farther_than_the_chunks_need():
    read = []

    async def records():
        for message in LOG:
            read.append(message.offset)
            yield [message]

    async def chunks():
        for message in CHUNKS:
            yield [message]
            last = json.loads(message.value)["source"]["last_offset"]
            assert read[-1] <= max(last, 9)

    async def nothing():
        return
        yield

    proof = PartitionProof(TOPICS, 0, Report())
    asyncio.run(prove_partition(proof, records(), chunks(), nothing()))
    assert read == [it.offset for it in LOG]


def test_message_that_is_not_accounted_for_is_no_proof():
    report = verify()
    report.message_count += 1
    assert not report.is_clean
    assert report.lines()[-1].startswith("NOT verified")
    assert "beside: 1 messages that are not accounted for" in report.lines()


def test_json_holds_every_number_and_the_first_fault_of_each_kind():
    report = verify(chunks=edited(at(b"a", 2), b'"zzz', b'"zzy'))
    found = json.loads(json.dumps(report.as_json()))
    assert (found["ok"], found["chunked_count"], found["open_count"]) == (False, 10, 1)
    assert found["faults"]["altered"] == 1
    assert found["faults"]["missing"] == 0
    first = found["first_faults"][0]
    assert (first["kind"], first["session"], first["t"]) == ("altered", "a", 2)
    assert (first["topic"], first["partition"], first["offset"]) == ("chunks", 0, 1)
