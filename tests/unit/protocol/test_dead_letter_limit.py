"""A producer that forgot the key is heard at once, whatever its batches and restarts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.core.errors import NoSessionError, StateError
from processor.protocol.dead_letter_limit import DeadLetterLimit, DeadLetterMeter, Sessionless

ERROR = NoSessionError("no session: the record has no key")
LIMIT = DeadLetterLimit(0.1, 20)


def fed(limit, kinds, *, size=10**6, meter=None):
    """The meter after records that are dead letters where ``kinds`` is true, in batches."""
    meter = meter or DeadLetterMeter()
    for start in range(0, len(kinds), size):
        batch = kinds[start : start + size]
        dead = [
            Sessionless(index, start + index, ERROR)
            for index, is_dead in enumerate(batch)
            if is_dead
        ]
        meter = limit.after(meter, len(batch), dead, "records[3]")
    return meter


def refused_at(limit, kinds, *, size=10**6):
    """The offset of the record that is one too many, ``None`` if there is none."""
    try:
        fed(limit, kinds, size=size)
    except StateError as error:
        return int(str(error).split("@")[1].split(":")[0])
    return None


def naive(limit, kinds):
    """The same, from all records before each."""
    for at, is_dead in enumerate(kinds):
        if not is_dead:
            continue
        row = 0
        while row <= at and kinds[at - row]:
            row += 1
        begin = max(0, (at + 1) // 500 - 1) * 500
        recent = kinds[begin : at + 1]
        is_judged = limit.max_ratio < 1 and len(recent) >= 100
        if limit.max_in_a_row and row > limit.max_in_a_row:
            return at
        if is_judged and sum(recent) > limit.max_ratio * len(recent):
            return at
    return None


#: Stretches of records of one kind, long enough to fill blocks.
logs = st.lists(
    st.tuples(st.booleans(), st.one_of(st.integers(0, 30), st.integers(0, 700))), max_size=8
).map(lambda runs: [is_dead for is_dead, count in runs for _ in range(count)])
limits = st.builds(
    DeadLetterLimit, st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.sampled_from([0, 1, 20, 300])
)


@given(limits, logs, st.integers(1, 900))
def test_batches_change_nothing_and_a_naive_count_agrees(limit, kinds, size):
    if limit.is_off:
        assert fed(limit, kinds) == DeadLetterMeter()
        return
    assert refused_at(limit, kinds, size=size) == refused_at(limit, kinds) == naive(limit, kinds)


@given(logs, st.integers(1, 900))
def test_the_meter_is_the_same_however_its_records_are_split(kinds, size):
    generous = DeadLetterLimit(0.999, 10**6)
    kinds = [is_dead and index % 7 == 0 for index, is_dead in enumerate(kinds)]
    assert fed(generous, kinds, size=size) == fed(generous, kinds)


def test_the_row_is_told_from_its_first_offset_with_the_reason_and_the_remedies():
    meter = fed(LIMIT, [False] * 1000 + [True] * 10)
    with pytest.raises(StateError) as raised:
        fed(LIMIT, [True] * 11, meter=meter)
    said = str(raised.value)
    assert said.startswith("records[3]@10: 21 records in a row, from offset 1000 on, have no")
    for part in (
        "no-key",
        "Nothing of this batch is committed",
        "PROCESSOR_MAX_DEAD_LETTER_RATIO=1",
        "PROCESSOR_MAX_CONSECUTIVE_DEAD_LETTERS=0",
    ):
        assert part in said


def test_the_share_is_judged_from_a_hundred_records_on():
    assert refused_at(LIMIT, [True, False] * 49) is None
    assert refused_at(LIMIT, [True, False] * 60) == 100
    with pytest.raises(StateError, match=r"records\[3\]@100: 51 of the last 101 records, have"):
        fed(LIMIT, [True, False] * 60)


def test_a_limit_that_was_off_begins_anew():
    kinds = [True] * 400
    meter = fed(DeadLetterLimit(), kinds, meter=fed(LIMIT, kinds[:20]))
    assert refused_at(LIMIT, [True] * 20) is None
    assert fed(LIMIT, [True] * 20, meter=meter).in_a_row == 20
