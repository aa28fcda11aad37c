"""The oracle must catch every kind of fault: each test breaks sound chunks in one way."""

import hashlib
from dataclasses import replace

import pytest

from tests.e2e.oracle import judge_logs
from tests.unit.sound_chunks import BUDGET, S1, chunk, chunked, line, log, rewritten

S2 = b"s2"
END = None


def faults(records, chunks, dead_letters=(), **how):
    """Return what the oracle found, as a plain dict."""
    verdict = judge_logs(records, chunks, dead_letters, **({"max_tokens": BUDGET} | how))
    assert verdict.ok == (not verdict.faults.total())
    assert all(name in str(verdict) for name in verdict.faults)
    return {name: count for name, count in verdict.faults.items() if count}


# Five records of 5 tokens: two fit into a chunk, and the last stays open.
RECORDS = log(*[(S1, line(20))] * 5)
A, B, C, D, E = RECORDS
CHUNKS = chunked([A, B], [C, D])


def test_sound_chunks_are_found_sound():
    verdict = judge_logs(RECORDS, CHUNKS, [], max_tokens=BUDGET)
    assert verdict.ok
    assert (verdict.records, verdict.sessions, verdict.chunks, verdict.open) == (5, 1, 2, 1)


def test_two_sessions_and_every_way_of_carrying_are_found_sound():
    records = log(
        (S1, '{ "é": "会話" }'.encode()),
        (S2, b'{"half": "\\ud83d"} and not JSON'),
        (S1, b"\xff\xfe"),
        (S1, b""),
        (S2, line(12)),
    )
    first = chunked([records[0], records[2], records[3], "idle"])
    second = chunked([records[1], "age"], session=S2)
    assert faults(records, [*first, *second]) == {}


def test_same_key_in_two_partitions_is_two_sessions():
    other = [replace(each, partition=1) for each in RECORDS]
    there, _ = chunk(1, [other[0], other[1]], hashlib.sha256(S1).digest(), partition=1)
    assert faults([*RECORDS, *other], [*CHUNKS, there], complete=False) == {}


def test_a_record_left_out_is_missing():
    assert faults(RECORDS, chunked([A, "idle"], [C, D])) == {"missing": 1}


def test_an_open_rest_above_the_budget_is_missing_once_the_worker_is_done():
    assert faults(RECORDS, CHUNKS[:1]) == {"missing": 3}
    assert faults(RECORDS, CHUNKS[:1], complete=False) == {}


def test_a_lone_oversized_record_cannot_stay_open():
    assert faults(log((S1, line(200))), []) == {"missing": 1}


def test_a_chunk_sent_twice_is_repeated():
    found = faults(RECORDS, [CHUNKS[0], CHUNKS[0], CHUNKS[1]])
    assert found["repeated"] == 2
    assert found["gaps"] == 1


def test_a_record_in_two_chunks_is_repeated():
    assert faults(RECORDS, chunked([A, B], [B, C, "idle"], [D])) == {"repeated": 1}


def test_a_record_after_a_later_one_is_reordered():
    assert faults(RECORDS, chunked([A, C], [B, D]))["reordered"] == 1


def test_one_changed_byte_is_altered_even_if_the_json_means_the_same():
    records = log((S1, b'{"a": 1.0}'))
    [made] = chunked([*records, "idle"])
    assert faults(records, [rewritten(made, b'{"a": 1.0}', b'{"a":1.00}')]) == {
        "altered": 1,
        "digests": 1,
    }


def test_altered_bytes_under_a_digest_of_their_own_are_altered():
    assert faults(RECORDS, chunked([replace(A, value=line(19)), B], [C, D])) == {"altered": 1}


def test_another_timestamp_is_altered():
    assert faults(RECORDS, chunked([replace(A, timestamp_ms=7), B], [C, D])) == {"altered": 1}


def test_a_record_of_another_session_is_altered():
    records = log((S1, line(20)), (S2, line(20)))
    found = faults(records, chunked([*records, "idle"]), complete=False)
    assert found == {"altered": 1}


def test_a_skipped_t_is_a_gap():
    late = chunk(3, [C, D], hashlib.sha256(b"").digest())[0]
    assert faults(RECORDS, [CHUNKS[0], late])["gaps"] == 1


def test_t_must_begin_at_one():
    first, _ = chunk(0, [A, B], hashlib.sha256(S1).digest())
    assert faults(RECORDS, [first], complete=False)["gaps"] == 1


def test_a_chunk_in_another_partition_is_found():
    assert faults(RECORDS, [CHUNKS[0], replace(CHUNKS[1], partition=3)]) == {"wrong_partition": 1}


def test_several_records_above_the_budget_are_found():
    found = faults(RECORDS, chunked([A, B, C, "idle"], [D]))
    assert found == {"over_budget": 1}


def test_over_budget_must_say_what_is():
    assert faults(RECORDS, chunked([A, B], [C, D], over_budget=True)) == {"over_budget": 2}
    records = log((S1, line(200)))
    assert faults(records, chunked([records[0], "oversize"])) == {}
    assert faults(records, chunked([records[0], "oversize"], over_budget=False)) == {
        "over_budget": 1
    }


def test_a_chunk_closed_too_early_for_tokens_is_found():
    assert faults(RECORDS, chunked([A], [B, C], [D, E])) == {"boundaries": 1}
    assert faults(RECORDS, chunked([A, "idle"], [B, C], [D, E])) == {}


def test_a_wrong_token_count_is_found():
    short = b'"token_count":4,'
    made = [rewritten(CHUNKS[0], b'"token_count":5,', short), CHUNKS[1]]
    made[0] = rewritten(made[0], b'"token_count": 10', b'"token_count": 8')
    assert faults(RECORDS, made)["tokens"] == 2


@pytest.mark.parametrize("name", ["previous_digest", "digest"])
def test_a_broken_digest_is_found(name):
    assert faults(RECORDS, chunked([A, B], **{name: "00" * 32}))["digests"] == 1


def test_an_end_without_final_chunk_is_found_once_the_worker_is_done():
    records = log((S1, line(20)), (S1, END))
    assert faults(records, []) == {"missing": 1, "ends": 1}
    assert faults(records, chunked([records[0], "idle"])) == {"ends": 1}
    assert faults(records, chunked([records[0], "idle"]), complete=False) == {}


def test_an_end_closes_the_open_chunk_or_makes_an_empty_one():
    records = log((S1, line(20)), (S1, END))
    assert faults(records, chunked([records[0], "end"])) == {}
    assert faults(records, chunked([records[0], "idle"], ["end"])) == {}


def test_a_second_end_with_nothing_between_makes_no_chunk():
    records = log((S1, line(20)), (S1, END), (S1, END))
    assert faults(records, chunked([records[0], "end"])) == {}
    assert faults(records, chunked([records[0], "end"], ["end"])) == {"ends": 1}


def test_records_go_on_after_an_end():
    records = log((S1, END), (S1, line(20)), (S1, END), (S1, line(20)))
    assert faults(records, chunked(["end"], [records[1], "end"])) == {}


def test_a_chunk_across_an_end_is_found():
    records = log((S1, line(20)), (S1, END), (S1, line(20)))
    assert faults(records, chunked([records[0], records[2], "idle"])) == {"ends": 1}
    assert faults(records, chunked([records[0], records[2], "idle"]), complete=False) == {"ends": 1}


def test_a_final_chunk_without_an_end_is_found():
    assert faults(RECORDS, chunked([A, B, "end"], [C, D])) == {"ends": 1}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda made: replace(made, key=b"s9"),
        lambda made: replace(made, headers=(("ce_id", b"s1/9"),)),
        lambda made: replace(made, value=None),
        lambda made: rewritten(made, b'"session": "s1"', b'"session": "s9"'),
    ],
)
def test_what_is_no_chunk_of_any_session_is_malformed(spoil):
    assert faults(RECORDS, [spoil(CHUNKS[0])], complete=False)["malformed"]


def test_an_omitted_record_is_judged_by_its_size_and_digest():
    records = log((S1, line(200)))
    [made] = chunked([records[0], "oversize"])
    value = records[0].value
    whole = b'"timestamp_ms":1000,"token_count":50,"value":' + value
    left = f'"token_count":50,"bytes":200,"sha256":"{hashlib.sha256(value).hexdigest()}",'
    omitted = rewritten(made, whole, f'{left}"omitted":"too_large"'.encode())
    assert faults(records, [omitted]) == {}
    assert faults(records, [rewritten(omitted, b'"bytes":200', b'"bytes":199')]) == {"altered": 1}


# Dead letters.

KEYLESS = log((None, b"1"), (b"", b"2"), (b"\xff", b"3"), (None, None), (S1, line(20)))


def dead(message, **changes):
    origin = {"partition": message.partition, "offset": message.offset} | changes
    headers = tuple(
        (f"__connect.errors.{name}", str(number).encode()) for name, number in origin.items()
    )
    return replace(message, headers=(*message.headers, *headers), timestamp_ms=9)


LETTERS = [dead(each) for each in KEYLESS[:4]]


def test_every_record_without_a_session_is_one_dead_letter():
    verdict = judge_logs(KEYLESS, [], LETTERS, max_tokens=BUDGET)
    assert verdict.ok
    assert (verdict.dead_letters, verdict.records, verdict.open) == (4, 1, 1)


@pytest.mark.parametrize(
    ("letters", "count"),
    [
        (LETTERS[:2], 2),
        ([*LETTERS, LETTERS[0]], 1),
        ([*LETTERS, dead(KEYLESS[4])], 1),
        ([*LETTERS[:3], replace(LETTERS[3], value=b"")], 1),
        ([*LETTERS[:3], replace(LETTERS[3], key=b"")], 1),
        ([*LETTERS, replace(LETTERS[0], headers=())], 1),
    ],
)
def test_dead_letters_lost_repeated_undue_or_altered_are_found(letters, count):
    assert faults(KEYLESS, [], letters) == {"dead_letters": count}


def test_dead_letters_keep_the_records_headers():
    records = [replace(KEYLESS[0], headers=(("trace", b"7"),))]
    assert faults(records, [], [dead(records[0])]) == {}
    assert faults(records, [], LETTERS[:1]) == {"dead_letters": 1}


def test_outstanding_dead_letters_are_allowed_while_the_worker_is_at_work():
    assert faults(KEYLESS, [], [], complete=False) == {}
