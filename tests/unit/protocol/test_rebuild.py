"""A rebuilt state: what is refused, where a replay starts, what counts as processed."""

import json

import pytest

from processor.core.errors import ConfigError, StateError
from processor.core.policy import ChunkPolicy
from processor.counters import CharsOverFour
from processor.protocol.changelog import Counts, decode_partition, decode_sessions
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.port import Survey
from processor.protocol.rebuild import Rebuild, check_nothing_deleted
from tests.history import Message, chunks_of, letters_of, log_of

CONFIG = ChunkerConfig("records", ChunkPolicy(10), CharsOverFour())
NOW_MS = 1 << 50
LOG = log_of("a:one", "b:" + "x" * 100, "a:two", "b.", "c.", Message(5, None, b"x"), "a:three")


def rebuilding(*, committed=None, config=CONFIG, log_start=0, end=100, chunks_start=0):
    return Rebuild(config, 2, Survey(4, log_start, end, committed), chunks_start)


def rebuilt(log=LOG, *, processed=None, chunks=None, letters=None, **how):
    """The state out of a log whose first ``processed`` messages a worker has processed."""
    done = log if processed is None else log[:processed]
    rebuild = rebuilding(**how)
    source = ("records", 2)
    made = chunks_of(done, CONFIG.policy, source=source) if chunks is None else chunks
    for message in made:
        rebuild.take_chunk(message.value, message.offset)
    for letter in letters_of(done, *source) if letters is None else letters:
        rebuild.take_letter(letter)
    rebuild.take_records([it for it in log if it.offset >= how.get("log_start", 0)], NOW_MS)
    return rebuild.finish()


def test_replay_starts_at_the_first_record_that_is_in_no_chunk():
    made = rebuilt(committed=7)
    assert (made.entry.low, made.entry.seen) == (0, 7)
    later = rebuilt(log_of("a:1", "b:" + "x" * 100, "a.", "b:2", "a:3"), committed=5)
    assert (later.entry.low, later.entry.log_time_ms) == (3, 1_002_000)
    assert later.open_record_count == 2


def test_sessions_stand_where_their_last_chunks_left_them():
    made = rebuilt(committed=7)
    found = {name: (it.t, it.next_offset, it.ended, it.records) for name, it in made.states.items()}
    assert found == {"b": (2, 2, True, ()), "c": (1, 0, True, ())}
    last = json.loads(chunks_of(LOG, CONFIG.policy)[1].value)
    assert made.states["b"].digest.hex() == last["digest"]


def test_counts_add_up_and_the_last_record_is_known_again():
    entry = rebuilt(committed=7).entry
    assert entry.counts == Counts(records=4, chunked=1, dead_letters=1, ends=2)
    assert entry.fingerprint == (6, LOG[6].timestamp)
    assert entry.partition_count == 4


def test_entries_are_those_of_a_changelog():
    made = rebuilt(committed=7)
    assert decode_partition(made.entries, "here") == made.entry
    assert {it.session: it for it in decode_sessions(made.entries, "here")} == made.states


def test_log_time_before_the_replay_is_the_largest_not_the_last():
    log = log_of("b:" + "x" * 100, "b:" + "x" * 100, "a:1")
    log[1] = log[1]._replace(timestamp=5)
    assert rebuilt(log, committed=3).entry.log_time_ms == log[0].timestamp


@pytest.mark.parametrize(
    ("committed", "seen", "why"),
    [
        (7, 7, "the last transaction's"),
        (None, 6, "behind the dead letter, the last that is known"),
        (3, 6, "moved back: what is out was processed"),
    ],
)
def test_processed_is_what_the_group_says_unless_the_topics_know_better(committed, seen, why):
    assert rebuilt(committed=committed).entry.seen == seen, why


def test_record_without_a_session_that_has_no_dead_letter_was_not_processed():
    assert rebuilt(processed=5, committed=7).entry.seen == 5
    once = LOG[5]._replace(headers=(("__connect.errors.offset", b"1"),))
    log = [*LOG[:5], once, LOG[6]]
    assert rebuilt(log, processed=5, committed=7).entry.seen == 7  # can't be told from its first


def test_end_that_has_no_final_chunk_is_replayed():
    made = rebuilt(log_of("b:" + "x" * 100, "b.", "a:1"), processed=1, committed=3)
    assert made.entry.low == 1
    never = rebuilt(log_of("b:" + "x" * 100, "n.", "a:1"), processed=1, committed=3)
    assert never.entry.low == 1


def test_dead_letters_of_others_tell_nothing():
    other = letters_of(LOG, "others", 2) + letters_of(LOG, "records", 3)
    assert rebuilt(letters=other).entry.seen == 2


def test_rule_is_that_of_the_last_chunk():
    """A worker with another policy is then refused, as it would have been."""
    config = ChunkerConfig("records", ChunkPolicy(20), CharsOverFour())
    assert rebuilt(config=config).entry.rule == CONFIG.rule
    assert rebuilt([], config=config).entry.rule == config.rule


def chunk_messages(log=LOG):
    return chunks_of(log, CONFIG.policy, source=("records", 2))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b'"t":2', b'"t":3', "does not follow t=1"),
        (b'"previous_digest":"', b'"previous_digest":"00', "does not follow t=1"),
        (b'"digest":"', b'"digest":"z', "a digest that is none"),
        (b'"partition":2', b'"partition":1', r"comes from records\[1\]"),
        (b'"topic":"records"', b'"topic":"other"', r"comes from other\[2\]"),
    ],
)
def test_nothing_is_rebuilt_from_chunks_in_doubt(old, new, what):
    first, second, *_ = chunk_messages(LOG[:4])
    assert old in second.value
    spoilt = second._replace(value=new.join(second.value.rsplit(old, 1)))
    with pytest.raises(StateError, match=rf"chunk at offset 1 .*session 'b', .*{what}"):
        rebuilt(chunks=[first, spoilt])


def test_session_that_started_over_is_in_doubt():
    """After a reset its chunks stay, and t begins again."""
    with pytest.raises(StateError, match="does not follow t=2"):
        rebuilt(chunks=chunk_messages(LOG[:4]) * 2)


def test_session_may_begin_later_only_where_chunks_are_deleted():
    _, second, *_ = chunk_messages(LOG[:4])
    with pytest.raises(StateError, match="does not follow t=0"):
        rebuilt(chunks=[second])
    assert rebuilt(chunks=[second], chunks_start=1).states["b"].t == 2


def test_log_that_ends_before_what_is_processed_was_created_again():
    with pytest.raises(StateError, match="deleted and created again"):
        rebuilt(end=4)
    with pytest.raises(StateError, match="deleted and created again"):
        rebuilt(committed=101)


@pytest.mark.parametrize(("log_start", "chunks_start"), [(5, 0), (0, 3)])
def test_what_retention_has_deleted_is_not_guessed(log_start, chunks_start):
    survey = Survey(4, log_start, 100, 7)
    with pytest.raises(StateError, match=rf"before offset {log_start} .* before {chunks_start}"):
        check_nothing_deleted(survey, chunks_start, "records[2]")
    check_nothing_deleted(Survey(4, 0, 100, 7), 0, "records[2]")


def test_replay_starts_no_earlier_than_the_log():
    made = rebuilt(chunks=[], letters=[], committed=1, log_start=3)
    assert (made.entry.low, made.entry.seen) == (3, 3)


def test_app_that_began_at_the_end_of_the_log_is_not_rebuilt():
    latest = ChunkerConfig("records", ChunkPolicy(10), CharsOverFour(), start_at_end=True)
    with pytest.raises(ConfigError, match="KAFKA_AUTO_OFFSET_RESET=latest"):
        rebuilding(config=latest)


def test_a_session_that_was_forgotten_stands_where_its_last_chain_does():
    policy = ChunkPolicy(10, forget_ended_after_s=3.0)
    config = ChunkerConfig("records", policy, CharsOverFour())
    log = log_of("a:1", "a.", *["b:1"] * 4, "a:2", "a.", "c:1")
    chunks = chunks_of(log, policy, source=("records", 2))
    a = rebuilt(log, committed=9, chunks=chunks, config=config).states["a"]
    assert (a.t, a.ended, a.next_offset) == (1, True, 7)
    # As long as the log has the end, its time is known again.
    assert a.last_at_ms == log[7].timestamp
    with pytest.raises(StateError, match="set the group's offset behind the last record that was"):
        rebuilt(log, chunks=chunks, config=config)
