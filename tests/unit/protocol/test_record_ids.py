"""Which records repeat another, in bounded memory."""

from types import SimpleNamespace

from processor.protocol.record_ids import RecordIds


def record(offset, name=None, *, key=b"s", value=b"1"):
    headers = () if name is None else (("record-id", name),)
    return SimpleNamespace(offset=offset, key=key, value=value, headers=headers)


def test_a_record_repeats_one_of_its_session_that_is_near_enough():
    ids = RecordIds(10)
    told = [
        ids.is_repeated(it)
        for it in (
            record(0, b"1"),
            record(5, b"1", key=b"other"),
            record(10, b"1"),
            record(20, b"1"),
            record(31, b"1"),
        )
    ]
    assert told == [False, False, True, True, False]


def test_a_key_and_an_id_are_not_taken_for_another_two():
    ids = RecordIds(10)
    assert not ids.is_repeated(record(0, b"bc", key=b"a"))
    assert not ids.is_repeated(record(1, b"c", key=b"ab"))


def test_ends_and_what_has_no_id_repeat_nothing():
    ids = RecordIds(10)
    for offset in (0, 1):
        assert not ids.is_repeated(record(offset))
        assert not ids.is_repeated(record(offset, b""))
        assert not ids.is_repeated(record(offset, b"1", value=None))
        assert not ids.is_repeated(record(offset, b"2", key=None))
    null = SimpleNamespace(offset=2, key=b"s", value=b"1", headers=(("record-id", None),))
    assert not ids.is_repeated(null)


def test_no_more_is_remembered_than_the_window_holds():
    ids = RecordIds(10)
    for offset in range(1000):
        ids.is_repeated(record(offset, b"%d" % offset))
    assert len(ids._offsets) <= 11  # noqa: SLF001 - the bound is of memory
