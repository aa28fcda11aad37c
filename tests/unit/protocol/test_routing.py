"""A partition of telemetry: what becomes a record of which session, and what is remembered."""

import logging

import pytest

from processor.core.errors import ChangelogError, ConfigError, StateError
from processor.formats.format import FormatOptions
from processor.protocol.changelog import PARTITION_KEY, decode_partition
from processor.protocol.port import Batch
from tests.unit.protocol.routers import Router, add_format, raw


@pytest.fixture(autouse=True)
def named_format(monkeypatch):
    add_format(monkeypatch)


def test_record_goes_to_the_partition_of_its_session_whatever_the_telemetry_s_key():
    it = Router()
    it.feed(raw(0, {"session": "s1"}, key=b"/logs/a"), raw(1, {"n": 1}, key=b"/logs/a"))
    it.commit()
    assert it.records == [("s1", b'{"session": "s1"}'), ("s1", b'{"n": 1}')]
    assert [message.partition for message in it.sent] == [ord("1") % 3] * 2
    assert all(message.headers == [("event-time", b"then")] for message in it.sent)


def test_message_of_several_sessions_becomes_records_of_each():
    it = Router()
    it.feed(raw(0, {"many": [["s1", "a"], ["s2", "b"], ["s1", "c"]]}))
    it.commit()
    assert it.records == [("s1", b"a"), ("s2", b"b"), ("s1", b"c")]


def test_streams_do_not_see_what_others_remember():
    it = Router()
    it.feed(raw(0, {"session": "s1"}, key=b"a"), raw(1, {"session": "s2"}, key=b"b"))
    it.feed(raw(2, {"n": 1}, key=b"a"), raw(3, {"n": 2}, key=b"b"), raw(4, {"n": 3}))
    it.commit()
    assert [session for session, _ in it.records] == ["s1", "s2", "s1", "s2"]
    assert [message.value for message in it.dead_letters] == [b'{"n": 3}']


def test_next_owner_remembers_the_stream_and_its_format():
    it = Router()
    it.feed(raw(0, {"session": "s1"}, key=b"a"))
    it.commit()
    it.reopen()
    it.feed(raw(1, b"no object", key=b"a"))
    it.commit()
    assert it.records[-1] == ("s1", b"no object")


def test_what_is_not_committed_is_not_remembered():
    it = Router()
    it.feed(raw(0, {"many": [["s1", "a"]]}))
    it.reopen()
    assert it.state.position == 0
    it.feed(raw(0, {"many": [["s1", "a"]]}))
    it.commit()
    assert it.records == [("s1", b"a")]


def test_transaction_holds_records_what_changed_and_the_position():
    it = Router()
    it.feed(raw(0, {"many": [["s1", "a"]]}), raw(1, {"many": [["s1", "a"]]}))
    transaction, told = it.state.take(0)
    assert len(transaction.output) == 1
    assert transaction.next_offset == 2
    entry = decode_partition(transaction.entries, "telemetry[0]")
    assert (entry.low, entry.seen, entry.counts.records, entry.topic) == (2, 2, 1, "telemetry")
    assert len(transaction.entries) == 3  # the partition, the format's name, what was seen
    assert told.tally["processor_routed_records_total", (("format", "first-line"),)] == 1
    it.feed(raw(2, {"many": [["s1", "a"]]}))
    transaction, _ = it.state.take(1000)
    assert list(transaction.entries) == [PARTITION_KEY]


def test_what_belongs_to_no_session_is_a_dead_letter_with_its_origin():
    it = Router()
    it.feed(raw(7, {"n": 1}, headers=[("mine", b"kept")]))
    it.commit()
    (letter,) = it.dead_letters
    headers = dict(letter.headers)
    assert (letter.key, letter.value, headers["mine"]) == (None, b'{"n": 1}', b"kept")
    assert headers["__connect.errors.topic"] == b"telemetry"
    assert headers["__connect.errors.offset"] == b"7"
    assert headers["processor-reason"] == b"no-key"
    assert it.tallies[0]["processor_dead_letters_total", (("reason", "no-key"),)] == 1


def test_part_of_a_message_that_names_no_session_is_a_dead_letter_by_itself():
    it = Router()
    it.feed(raw(4, {"many": [["s1", "a"], [None, "b"], ["s2", "c"]]}, headers=[("mine", b"kept")]))
    it.commit()
    assert it.records == [("s1", b"a"), ("s2", b"c")]
    (letter,) = it.dead_letters
    headers = dict(letter.headers)
    assert (letter.value, headers["event-time"], headers["mine"]) == (b"b", b"then", b"kept")
    assert headers["__connect.errors.offset"] == b"4"
    assert (it.state.counts.records, it.state.counts.dead_letters) == (2, 1)


def test_first_value_that_is_nothing_does_not_decide_the_format():
    it = Router()
    it.feed(raw(0, b"junk"), raw(1, {"session": "s1"}), raw(2, {"n": 1}))
    it.commit()
    assert [message.value for message in it.dead_letters] == [b"junk"]
    assert [session for session, _ in it.records] == ["s1", "s1"]


@pytest.mark.parametrize("key", [b"s1", b"/logs/s1.jsonl", rb"C:\logs\s1.jsonl"])
def test_lines_of_any_kind_are_records_of_the_key_or_of_the_file_that_it_names(key):
    it = Router()
    it.feed(raw(0, b"plain", key=key), raw(1, b"too", key=key))
    it.commit()
    assert [session for session, _ in it.records] == ["s1", "s1"]


def test_first_value_that_a_format_recognises_decides_for_good():
    it = Router()
    it.feed(raw(0, b"plain", key=b"s1"), raw(1, {"session": "other"}, key=b"s1"))
    it.commit()
    it.reopen()
    it.feed(raw(2, b"plain", key=b"s1"))
    it.commit()
    assert [session for session, _ in it.records] == ["s1", "other", "other"]


def test_chosen_format_is_not_detected():
    it = Router(format="jsonl")
    it.feed(raw(0, {"session": "other"}, key=b"s1"))
    it.commit()
    assert [session for session, _ in it.records] == ["s1"]


def test_another_format_chosen_later_starts_without_what_was_remembered():
    it = Router()
    it.feed(raw(0, {"session": "s1"}, key=b"a"))
    it.commit()
    it.config = Router(format="jsonl").config
    it.reopen()
    it.feed(raw(1, {"n": 1}, key=b"a"))
    it.commit()
    assert it.records[-1][0] == "a"
    it.config = Router(format="first-line").config
    it.reopen()
    it.feed(raw(2, {"n": 2}, key=b"a"))
    it.commit()
    assert it.records[-1][0] == "a"


def test_null_value_ends_the_session_that_its_stream_was_in_and_forgets_the_stream():
    it = Router()
    it.feed(raw(0, {"session": "s1"}, key=b"a"), raw(1, None, key=b"a", headers=[("h", b"v")]))
    it.commit()
    assert it.records[-1] == ("s1", None)
    assert it.sent[-1].headers == [("h", b"v")]
    assert list(it.entries) == [PARTITION_KEY]
    it.feed(raw(2, {"n": 1}, key=b"a"))
    it.commit()
    assert it.records[-1][0] == "a"


@pytest.mark.parametrize("key", [b"a", None, b""])
def test_null_value_that_ends_nothing_is_a_dead_letter(key):
    it = Router()
    it.feed(raw(0, {"many": [["s1", "a"]]}), raw(1, None, key=key))
    it.commit()
    assert [message.value for message in it.dead_letters] == [None]
    it.feed(raw(2, {"many": [["s1", "a"]]}))
    it.commit()
    assert it.records == [("s1", b"a")]  # what is without a key has not been forgotten


def test_record_that_is_the_message_keeps_its_headers_and_one_made_of_it_does_not():
    it = Router()
    headers = [("record-id", b"7"), ("event-time", b"now")]
    it.feed(raw(0, {"session": "s1"}, headers=headers), raw(1, {"many": [["s1", "a"]]}, b"k"))
    it.feed(raw(2, {"many": [["s1", "b"]]}, headers=headers))
    it.commit()
    assert it.sent[0].headers == [("record-id", b"7"), ("event-time", b"then")]
    assert it.sent[2].headers == []


def test_message_whose_record_was_refused_as_too_large_is_a_dead_letter():
    it = Router(omitted={0})
    it.feed(raw(0, {"many": [["s1", "a"], ["s2", "b"]]}), raw(1, {"many": [["s2", "c"]]}))
    it.commit()
    assert it.records == [("s2", b"c")]
    assert dict(it.dead_letters[0].headers)["processor-reason"] == b"too-large"
    assert [message.lone_offset for message in it.sent] == [1]


def test_message_without_a_key_is_warned_of_once_where_there_are_several_partitions(caplog):
    caplog.set_level(logging.WARNING)
    it = Router(partition_count=4)
    it.feed(raw(0, {"many": []}), raw(1, {"many": []}), raw(2, {"many": []}, key=b"k"))
    it.commit()
    assert caplog.text.count("without a key") == 1
    assert it.tallies[0]["processor_unkeyed_telemetry_total", ()] == 2
    Router(partition_count=1).feed(raw(0, {"many": []}))
    assert caplog.text.count("without a key") == 1


def test_moved_position_alone_is_committed_now_and_then():
    it = Router()
    assert it.commit(0)
    it.feed(raw(0, {"many": []}, key=b"k"))
    assert it.commit(10)  # the format's name
    it.feed(raw(1, {"many": []}, key=b"k"))
    assert not it.commit(500)
    assert it.commit(1010)
    assert not it.commit(5000)


def test_partition_is_behind_until_it_has_all_that_there_was():
    it = Router()
    assert it.state.is_behind
    it.caught_up()
    assert not it.state.is_behind
    it.feed(raw(0, {"many": []}))
    assert it.state.is_behind


def test_batch_that_does_not_follow_is_refused():
    with pytest.raises(StateError, match=r"telemetry\[0\]: a batch starts at 3, next is 0"):
        Router().state.feed(Batch(0, 1, 3, 4, [], 0))


def test_grown_records_topic_is_refused_but_another_one_is_not():
    it = Router()
    it.commit()
    entry = decode_partition(it.entries, "telemetry[0]")
    Router(records_topic="other", records_partitions=9).config.check(entry, "telemetry[0]")
    with pytest.raises(ConfigError, match="had 3 partitions and now has 4"):
        Router(records_partitions=4).config.check(entry, "telemetry[0]")


@pytest.mark.parametrize(
    ("key", "value"), [(b"\x00", b"\x01x"), (b"\x93\xc0\x01\xa1n", b"\x02x"), (b"", b"")]
)
def test_entry_that_cannot_be_read_is_told_with_the_remedy(key, value):
    it = Router()
    it.entries[key] = value
    with pytest.raises(ChangelogError, match=r"telemetry\[0\].* (start over|rebuild)"):
        it.reopen()


def test_key_that_is_not_text_names_no_session():
    it = Router(options=FormatOptions(header_fields=(("h", "p"),)))
    it.feed(raw(0, b"plain", key=b"\xff"), raw(1, {"session": "s1"}, key=b"\xff"))
    it.commit()
    assert it.records == [("s1", b'{"session": "s1"}')]
    assert [message.key for message in it.dead_letters] == [b"\xff"]
