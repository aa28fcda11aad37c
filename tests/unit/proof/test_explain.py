from processor.core.policy import ChunkPolicy, OrIdle
from processor.proof.explain import Came, Closer, Closing, came_first, came_in_log, closing, ruler
from processor.proof.rules import Logged
from processor.proof.seen import Seen
from tests.history import Message, chunks_of, log_of

POLICY = ChunkPolicy(max_tokens=10, flush=OrIdle(30), max_age_s=100, max_chunk_records=4)


def seen_of(*items, policy=POLICY, **kwargs):
    return [Seen(it) for it in chunks_of(log_of(*items), policy, **kwargs)]


def message(offset, at_s, text="x"):
    value = None if text is None else text.encode()
    return Message(offset, b"a", value, 1_000_000 + 1000 * at_s)


def numbers(why):
    return (why.reason, why.closer, why.unit, why.limit, why.reached, why.excess)


def test_ruler_adds_the_tokens_of_the_records_up():
    chunk, *_ = seen_of("a:" + "x" * 8, "a:" + "y" * 12, "a:" + "z" * 40)
    marks = [(it.offset, it.token_count, it.running_tokens, it.size_bytes) for it in ruler(chunk)]
    assert marks == [(0, 2, 2, 8), (1, 3, 5, 12)]


def test_record_that_exceeds_the_budget_is_told_with_its_excess():
    chunk, following = seen_of("a:" + "x" * 20, "a:" + "y" * 28, "a.")
    why = closing(chunk, came_first(following))
    assert numbers(why) == ("tokens", Closer.RECORD, "tokens", 10, 12, 2)
    assert why.came.record.offset == 1


def test_record_above_the_budget_closed_its_chunk_itself():
    (chunk,) = seen_of("a:" + "x" * 60)
    assert numbers(closing(chunk, None)) == ("oversize", Closer.ITSELF, "tokens", 10, 15, 5)


def test_full_chunk_is_told_by_its_records():
    chunk, following = seen_of(*["a:x"] * 5, "a.")
    assert numbers(closing(chunk, came_first(following)))[:4] == (
        "count",
        Closer.RECORD,
        "records",
        4,
    )


def test_bytes_are_those_that_the_core_counts():
    policy = ChunkPolicy(max_tokens=1000, max_chunk_bytes=2500)
    chunk, following = seen_of("a:" + "x" * 200, "a:" + "y" * 200, "a.", policy=policy)
    why = closing(chunk, came_first(following))
    assert numbers(why)[:4] == ("bytes", Closer.RECORD, "bytes", 2500)
    assert why.excess > 0


def test_pause_is_told_by_how_much_it_was_too_long():
    chunk, following = seen_of(message(0, 0), message(1, 10), message(2, 52), message(3, 53, None))
    why = closing(chunk, came_first(following))
    assert numbers(why) == ("idle", Closer.RECORD, "ms", 30_000, 42_000, 12_000)


def test_age_is_told_from_the_first_record():
    policy = ChunkPolicy(max_tokens=100, max_age_s=100)
    items = [message(0, 0), message(1, 60), message(2, 101), message(3, 102, None)]
    chunk, following = seen_of(*items, policy=policy)
    why = closing(chunk, came_first(following))
    assert numbers(why) == ("age", Closer.RECORD, "ms", 100_000, 101_000, 1_000)


def test_clock_needs_no_record():
    (chunk,) = seen_of("a:x", clock_after=0)
    assert numbers(closing(chunk, None)) == ("idle", Closer.CLOCK, "ms", 30_000, None, None)


def test_end_of_session_is_told_with_its_place():
    (chunk,) = seen_of("a:x", "a.")
    assert closing(chunk, None) == Closing("end", Closer.END)
    why = closing(chunk, came_in_log(Logged(7, 5, 5, None), chunk))
    assert (why.closer, why.came.record.offset, why.came.is_end) == (Closer.END, 7, True)


def test_end_that_came_late_closes_for_the_pause_before_it():
    chunk, _ = seen_of(message(0, 0), message(1, 31, None))
    came = came_in_log(Logged(1, 1_031_000, 1_031_000, None), chunk)
    assert numbers(closing(chunk, came)) == ("idle", Closer.END, "ms", 30_000, 31_000, 1_000)


def test_next_record_is_counted_from_the_log_when_there_is_no_chunk_of_it():
    chunk, *_ = seen_of("a:" + "x" * 20, "a:" + "y" * 28)
    came = came_in_log(Logged(1, 1, 1, b"y" * 28), chunk)
    assert numbers(closing(chunk, came)) == ("tokens", Closer.RECORD, "tokens", 10, 12, 2)


def test_counter_that_is_not_here_leaves_the_excess_open():
    made = chunks_of(log_of("a:" + "x" * 20, "a:" + "y" * 28))
    value = made[0].value.replace(b"chars_over_four", b"unheard-of")
    chunk = Seen(made[0]._replace(value=value))
    why = closing(chunk, came_in_log(Logged(1, 1, 1, b"y" * 28), chunk))
    assert (why.reached, why.excess, why.came.record.offset) == (None, None, 1)


def test_omitted_record_has_its_size_and_no_value():
    (chunk,) = seen_of("a:" + "x" * 60, omit=(0,))
    (mark,) = ruler(chunk)
    assert (mark.size_bytes, mark.value) == (60, None)
    assert closing(chunk, None).closer == Closer.ITSELF


def test_nothing_to_be_seen_behind_a_chunk_leaves_what_closed_it_open():
    chunk, *_ = seen_of("a:" + "x" * 20, "a:" + "y" * 28)
    assert numbers(closing(chunk, None)) == ("tokens", Closer.RECORD, "tokens", 10, None, None)
    assert came_first(None) is None
    assert isinstance(came_first(chunk), Came)
