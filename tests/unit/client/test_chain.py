import dataclasses

import pytest

from processor.client.chain import Chains
from processor.client.chunk import Position, chunk_of
from processor.core.digest import first_digest, next_digest
from processor.core.errors import ChainError, DigestError, GapError, RepeatError, StateError
from tests.builders import chunk_lines
from tests.unit.client.delivering import message, messages_of, nowhere, read

LINES = chunk_lines(b"a b", b"c d", b"e f", b"g h")


def ts(chunks):
    return [it.t for it in chunks]


def test_all_chunks_of_all_sessions_come_in_order():
    other = messages_of(chunk_lines(b"x", session="z"), first=4, session="z")
    assert ts(read([*messages_of(LINES), *other])) == [1, 2, 3, 4, 1]


def test_one_session_can_be_asked_for():
    other = messages_of(chunk_lines(b"x", session="z"), session="z")
    assert ts(read([*other, *messages_of(LINES, first=1)], session="s")) == [1, 2, 3, 4]


def test_a_gap_is_raised_where_it_is():
    messages = messages_of(LINES)
    with pytest.raises(GapError, match=r"'s' t=3 \(partition 0, offset 2\) comes after t=1") as it:
        read([messages[0], messages[2]])
    assert ts(it.value.seen) == [1]
    assert (it.value.session, it.value.t, it.value.partition, it.value.offset) == ("s", 3, 0, 2)
    assert isinstance(it.value, StateError)


def test_a_repeat_is_raised():
    with pytest.raises(RepeatError, match=r"t=1 .* comes after t=2"):
        read(messages_of([LINES[0], LINES[1], LINES[0]]))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b'"text":"c d"', b'"text":"c e"', "its records"),
        (b'"digest":"', b'"digest":"00', "has the digest"),
        (b'"previous_digest":"', b'"previous_digest":"00', "as the digest of t=1"),
    ],
)
def test_a_changed_byte_is_raised(old, new, what):
    with pytest.raises(DigestError, match=what):
        read(messages_of([LINES[0], LINES[1].replace(old, new)]))


def test_a_session_that_lacks_its_beginning_is_raised_where_the_partition_is_whole():
    with pytest.raises(GapError, match=r"t=2 .* comes after t=0"):
        read(messages_of(LINES[1:]))


def test_a_session_whose_beginning_was_deleted_is_taken_on_trust():
    assert ts(read(messages_of(LINES[1:], first=1))) == [2, 3, 4]


def test_trust_ends_with_the_first_chunk():
    with pytest.raises(GapError):
        read(messages_of([LINES[1], LINES[3]], first=1))


@pytest.mark.parametrize("done", [1, 2, 3, 4])
def test_a_reader_goes_on_behind_the_position_that_it_kept(done):
    kept = read(messages_of(LINES))[done - 1].position
    for start in range(done + 1):  # the group may stand further back, but not further on
        messages = messages_of(LINES[start:], first=start)
        assert ts(read(messages, after=lambda _: kept)) == [1, 2, 3, 4][done:]


def test_a_reader_that_kept_less_than_its_group_is_told_of_the_gap():
    kept = read(messages_of(LINES))[0].position
    with pytest.raises(GapError, match="comes after t=1"):
        read(messages_of(LINES[2:], first=2), after=lambda _: kept)


def test_another_chunk_at_the_position_that_was_kept_is_raised():
    kept = read(messages_of(LINES))[1].position._replace(digest="11" * 32)
    with pytest.raises(DigestError, match="when it was read"):
        read(messages_of(LINES), after=lambda _: kept)


def test_a_session_on_two_partitions_is_raised_to_who_keeps_one_position_of_it():
    kept = Position(4, "11" * 32, 1, 9, final=False)
    with pytest.raises(ChainError, match="stood in partition 1 before"):
        read(messages_of(LINES), after=lambda _: kept)


def test_sessions_of_one_name_on_two_partitions_are_two():
    assert ts(read([*messages_of(LINES), *messages_of(LINES, partition=1)])) == [1, 2, 3, 4] * 2


def test_a_session_may_begin_anew_after_its_end():
    """A worker can be told to forget sessions that ended."""
    assert chunk_of(message(LINES[-1], 3)).flush == "end"
    last = LINES[-1].replace(b'"final":false', b'"final":true')
    assert ts(read(messages_of([*LINES[:-1], last, LINES[0]]))) == [1, 2, 3, 4, 1]


def test_an_empty_final_chunk_is_part_of_the_chain():
    last = chunk_of(message(LINES[-1], 3))
    digest = next_digest(bytes.fromhex(last.digest), [])
    end = dataclasses.replace(
        last,
        t=5,
        records=(),
        final=True,
        previous_digest=last.digest,
        digest=digest.hex(),
        offset=4,
    )
    chains = Chains(nowhere)
    read(messages_of(LINES), chains=chains)
    assert chains.take(end)


def test_the_bytes_of_an_omitted_record_are_not_asked_for():
    first = chunk_of(message(LINES[0], 0))
    omitted = dataclasses.replace(first.records[0], value=None)
    assert Chains(nowhere).take(dataclasses.replace(first, records=(omitted,), digest="11" * 32))


def test_what_was_taken_from_us_is_forgotten():
    chains = Chains(nowhere)
    messages = messages_of(LINES)
    assert ts(read(messages[:1], chains=chains)) == [1]
    chains.forget([0])
    assert ts(read(messages[3:], chains=chains)) == [4]


def test_the_chain_of_a_session_begins_with_its_name():
    wrong = first_digest("z").hex().encode()
    line = LINES[0].replace(first_digest("s").hex().encode(), wrong)
    with pytest.raises(DigestError, match="as the digest of t=0"):
        read([message(line, 5)])
