"""What is told of a chunk that comes out otherwise, and what is taken as given."""

import json
import sys
from hashlib import sha256

import pytest

from processor.core.errors import ConfigError
from processor.core.policy import ChunkPolicy, OrIdle
from processor.counters import counter_named
from processor.proof.message import Starts
from processor.proof.report import FaultKind, Report
from processor.proof.verify import PartitionProof
from processor.wire_models import decode_chunk
from tests.history import chunks_of, log_of
from tests.unit.proof.verifying import CHUNKS, LOG, TOPICS, at, edited, resealed, verify


def recomputed(log=LOG, chunks=CHUNKS, **how):
    return verify(log, chunks, recompute=True, **how)


def difference(log=LOG, chunks=CHUNKS, **how):
    """The only chunk that comes out otherwise."""
    report = recomputed(log, chunks, **how)
    assert report.faults[FaultKind.DIFFERENT] == 1, report.lines()
    return report.first[FaultKind.DIFFERENT]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_every_chunk_of_a_right_history_is_recomputed(size):
    report = recomputed(size=size)
    assert report.is_clean
    assert report.recomputed_count == len(CHUNKS)
    assert report.summary().endswith(", 1 open, 6 recomputed, 0 different")


def test_nothing_is_recomputed_unless_asked():
    report = verify(chunks=edited(at(b"a", 2), b'"t":2', b'"t": 2'))
    assert report.is_clean
    assert "recomputed" not in report.summary()


def test_difference_is_told_with_its_place_and_the_digests_of_both():
    chunks = edited(at(b"a", 2), b'"t":2', b'"t": 2')
    found = difference(chunks=chunks)
    place = (found.session, found.t, found.topic, found.partition, found.offset)
    assert place == ("a", 2, "chunks", 0, at(b"a", 2))
    assert found.what == "the same fields, written otherwise"
    assert found.expected == sha256(CHUNKS[at(b"a", 2)].value).hexdigest()
    assert found.found == sha256(chunks[at(b"a", 2)].value).hexdigest()
    report = recomputed(chunks=chunks)
    assert report.summary().startswith("NOT verified")
    assert report.summary().endswith("6 recomputed, 1 different")
    assert report.as_json()["faults"]["different"] == 1


def test_fields_that_differ_are_named_with_both_values():
    found = difference(chunks=resealed(at(b"b", 1), note="x" * 100))
    assert found.what == f'note "{"x" * 59}…, recomputed nothing'
    wrong = edited(at(b"b", 1), b'"flush":"end"', b'"flush":"idle"')
    assert difference(chunks=wrong).what == 'flush "idle", recomputed "end"'


def test_key_and_headers_are_compared_too():
    found = difference(chunks=edited(at(b"a", 1), key=b"z"))
    assert found.what == "key b'z', recomputed b'a'"
    headers = (*CHUNKS[0].headers, ("trace", b"1"))
    assert "('trace', b'1')], recomputed [" in difference(chunks=edited(0, headers=headers)).what


def test_carried_headers_are_compared_to_the_byte():
    policy = ChunkPolicy(10, carry_headers=("user-id",))
    log = log_of("a:1", "b:1", "a:" + "x" * 40, "b:" + "x" * 40)
    log[0] = log[0]._replace(headers=(("user-id", b"eve"), ("user-id", b"ada"), ("other", b"1")))
    chunks = chunks_of(log, policy)
    assert b'"headers":{"user-id":"ada"}' in chunks[0].value
    assert recomputed(log, chunks).is_clean
    spoilt = [it._replace(value=it.value.replace(b'"ada"', b'"eve"')) for it in chunks]
    assert difference(log, spoilt).what.startswith("records ")


def test_headers_move_a_cut_by_bytes_and_it_is_recomputed():
    policy = ChunkPolicy(10_000, max_chunk_bytes=2500, carry_headers=("user-id",))
    log = [it._replace(headers=(("user-id", b"u" * 99),)) for it in log_of(*["a:1"] * 5)]
    chunks = chunks_of(log, policy)
    assert b'"flush":"bytes"' in chunks[0].value
    assert recomputed(log, chunks).is_clean


def test_one_difference_makes_no_others():
    """What differs is taken as given, so that the chunks behind it are judged by themselves."""
    log = log_of(*["a:" + "x" * 20] * 9)
    chunks = chunks_of(log)
    assert len(chunks) > 3
    spoilt = chunks[1]._replace(
        value=chunks[1].value.replace(b'"flush":"tokens"', b'"flush":"age"')
    )
    assert difference(log, [chunks[0], spoilt, *chunks[2:]]).t == 2


def test_chunk_that_nothing_closes_is_told():
    log = log_of("a:" + "x" * 20, "b:1")
    (closed, *_) = chunks_of(log_of("a:" + "x" * 20, "b:1", "a:" + "y" * 30))
    assert difference(log, [closed]).what == "nothing in the log closes a chunk here"


def test_chunk_that_waits_for_the_message_that_closed_it_is_judged_when_that_comes():
    log = log_of("a:1", "b:" + "x" * 50, "b:1", "b:" + "x" * 50, "a.", step_ms=40_000)
    report = recomputed(log, chunks_of(log))
    assert report.is_clean, report.lines()
    assert report.recomputed_count == len(chunks_of(log)) == 5


def test_time_is_the_largest_of_the_partition_even_where_a_record_is_dated_back():
    log = log_of("a:1", "b:1", "a:2", "a:" + "x" * 40)
    log[1:] = [it._replace(timestamp=it.timestamp + 40_000) for it in log[1:]]
    log[2] = log[2]._replace(timestamp=log[0].timestamp)
    chunks = chunks_of(log)
    assert b'"flush":"idle"' in chunks[0].value
    assert recomputed(log, chunks).is_clean


def test_cut_of_the_clock_is_taken_as_given():
    log = log_of("a:1", "a:2", "b:1", "a:3", "a:" + "x" * 40)
    chunks = chunks_of(log, clock_after=1)
    assert b'"clock":true' in chunks[0].value
    assert recomputed(log, chunks).is_clean
    denied = chunks[0]._replace(value=chunks[0].value.replace(b'"clock":true,', b""))
    report = recomputed(log, [denied, *chunks[1:]])
    assert report.faults[FaultKind.DIFFERENT] == 1


def test_clock_can_not_cut_where_no_rule_asks_for_the_time():
    log, policy = log_of("a:1", "a:2", "b:1", "a:3"), ChunkPolicy(10)
    timed = chunks_of(log, ChunkPolicy(10, flush=OrIdle(30)), clock_after=1)
    wrong = timed[0]._replace(value=timed[0].value.replace(b'"idle_s":30', b'"idle_s":0'))
    assert policy.idle_s == 0
    assert difference(log, [wrong]).what == "nothing in the log closes a chunk here"


def test_record_that_the_topic_refused_is_taken_as_given():
    log = log_of("a:1", "a:" + "x" * 100, "a:2", "a.")
    chunks = chunks_of(log, omit={1})
    assert any(b'"omitted"' in it.value for it in chunks)
    assert recomputed(log, chunks).is_clean
    lied = [it._replace(value=it.value.replace(b'"bytes":100', b'"bytes":101')) for it in chunks]
    assert difference(log, lied).what.startswith("records 1 at offsets 1 to 1, ")


def test_chunks_of_an_unknown_counter_are_counted_and_no_fault():
    chunks = [
        it._replace(value=it.value.replace(b'"chars_over_four"', b'"another"')) for it in CHUNKS
    ]
    report = recomputed(chunks=chunks)
    assert (report.recomputed_count, report.not_recomputed_count) == (0, len(CHUNKS))
    assert report.is_clean, report.lines()
    assert "chunks can't be recomputed: PROCESSOR_TOKEN_COUNTER=another" in report.lines()[1]


def test_counter_that_is_not_installed_is_for_a_person_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    name = b'"hf:tokenizer.json@0123456789ab"'
    chunks = [it._replace(value=it.value.replace(b'"chars_over_four"', name)) for it in CHUNKS]
    with pytest.raises(ConfigError, match=r"poimen-processor\[hf-tokens\]"):
        recomputed(chunks=chunks)
    (warning,) = verify(chunks=chunks).warnings
    assert "poimen-processor[hf-tokens]" in warning


def test_record_too_long_to_be_counted_is_recomputed_and_known_to_be_above_the_budget():
    log = log_of("a:1", "a:" + "x " * 1_000, "a:" + "y" * 400, "a.")
    chunks = chunks_of(log, counter=counter_named("qwen2.5"))
    counts = [[it.token_count for it in decode_chunk(chunk.value).records] for chunk in chunks]
    assert counts == [[1], [11], [100], []]
    assert recomputed(log, chunks).is_clean


def test_chunks_whose_records_are_deleted_are_counted_and_those_behind_recomputed():
    report = recomputed([it for it in LOG if it.offset >= 5], starts=Starts(records=5))
    assert report.is_clean, report.lines()
    assert (report.recomputed_count, report.not_recomputed_count) == (3, 3)


@pytest.mark.parametrize("start", range(len(CHUNKS)))
def test_first_chunk_that_is_left_is_recomputed_from_what_it_says_of_those_before(start):
    report = recomputed(chunks=CHUNKS[start:], starts=Starts(chunks=start))
    assert not report.faults[FaultKind.DIFFERENT], report.lines()
    assert report.recomputed_count == len(CHUNKS) - start


def test_times_of_producers_are_a_warning():
    log = [it._replace(timestamp_type=0) for it in LOG]
    report = recomputed(log)
    assert report.is_clean
    assert [it for it in report.warnings if "their producers' timestamps" in it]
    assert not recomputed().warnings


def test_what_is_behind_the_last_chunk_is_not_kept():
    proof = PartitionProof(TOPICS, 0, Report())
    proof.recompute()
    proof.end_chunks()
    proof.take_records(log_of(*["a:1"] * 9))
    (session,) = proof._recomputation._sessions.values()  # noqa: SLF001 - memory shows nowhere else
    assert not session.queue


@pytest.mark.parametrize(
    "value",
    [b"[" * 61 + b"]" * 61, b'{"a":"\xff"}', b'{"a":\n1}'],
    ids=["deep", "no text", "lines"],
)
def test_record_that_was_spliced_in_raw_and_must_not_be_is_told(value):
    """All of them a reader takes: what the chunk shows of a record is no proof of these."""
    log = [it._replace(value=value) if it.value else it for it in log_of("a:1", "a.")]
    (right,) = chunks_of(log, ChunkPolicy(1000))
    start, stop = right.value.index(b',"', right.value.index(b'"token_count"')), b"}],"
    raw = right.value[: start + 1] + b'"value":' + value + right.value[right.value.index(stop) :]
    wrong = right._replace(value=raw)
    assert recomputed(log, [right]).is_clean
    assert verify(log, [wrong]).is_clean
    assert difference(log, [wrong]).what.startswith("records ")


def test_chunk_of_another_digest_is_told_although_it_is_not_hashed_twice():
    digest = json.loads(CHUNKS[at(b"a", 3)].value)["digest"]
    wrong = edited(at(b"a", 3), digest.encode(), digest[::-1].encode())
    report = recomputed(chunks=wrong)
    assert report.faults[FaultKind.DIGEST] >= 1
    assert report.faults[FaultKind.DIFFERENT] >= 1
