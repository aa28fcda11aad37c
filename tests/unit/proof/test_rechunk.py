from dataclasses import replace

from processor.core.policy import ChunkPolicy, OrIdle
from processor.counters import counter_named
from processor.proof.rechunk import Cut, Other, Rechunking
from processor.proof.seen import Seen
from tests.builders import WordCounter
from tests.history import Message, chunks_of, log_of

POLICY = ChunkPolicy(max_tokens=10, flush=OrIdle(30))


def message(offset, at_s, text="x" * 8):
    value = None if text is None else text.encode()
    return Message(offset, b"a", value, 1_000_000 + 1000 * at_s)


def diff_of(other, *items, policy=POLICY, **kwargs):
    rechunking = Rechunking(other)
    changes = []
    for it in chunks_of(log_of(*items), policy, **kwargs):
        changes += rechunking.take(Cut.of_seen(Seen(it)))
    changes += rechunking.finish()
    return rechunking.diff, [
        (it.is_added, it.span.t, it.span.first_offset, it.span.last_offset) for it in changes
    ]


def test_larger_budget_joins_what_stood_apart():
    items = ["a:" + "x" * 28] * 4
    diff, changes = diff_of(Other(max_tokens=20), *items, "a.")
    assert changes[:3] == [(False, 1, 0, 0), (False, 2, 1, 1), (True, 1, 0, 1)]
    assert changes[3:] == [(False, 3, 2, 2), (False, 4, 3, 3), (True, 2, 2, 3)]
    assert (diff.old.chunk_count, diff.new.chunk_count) == (4, 2)
    assert (diff.old.fill_ratio, diff.new.fill_ratio) == (0.7, 0.7)
    assert (diff.kept_count, diff.removed_count, diff.added_count) == (2, 2, 0)


def test_smaller_budget_cuts_and_leaves_more_over_it():
    diff, changes = diff_of(Other(max_tokens=3), "a:" + "x" * 8, "a:" + "y" * 20, "a.")
    assert changes == [(True, 1, 0, 0), (False, 1, 0, 1), (True, 2, 1, 1), (True, 3, 2, 1)]
    assert diff.new.chunk_count == 3, "the end finds nothing open"
    assert (diff.old.over_budget_count, diff.new.over_budget_count) == (0, 1)


def test_pause_that_closed_a_chunk_closes_it_again_within_another_budget():
    items = [message(0, 0), message(1, 40), message(2, 41), message(3, 42, None)]
    _, changes = diff_of(Other(max_tokens=100), *items)
    assert changes == []


def test_pause_hidden_behind_a_record_over_the_budget_closes_within_another_one():
    items = [message(0, 0, "x" * 60), message(1, 40), message(2, 41, None)]
    diff, _ = diff_of(Other(max_tokens=100), *items)
    assert diff.unchanged_count == diff.new.chunk_count == 2


def test_what_the_clock_closed_is_given_unless_times_are_asked_for():
    items = [message(0, 0), message(1, 1), message(2, 2, None)]
    assert diff_of(Other(max_tokens=100), *items, clock_after=0)[1] == []
    _, changes = diff_of(Other(idle_s=30), *items, clock_after=0)
    assert changes == [(False, 1, 0, 0), (False, 2, 1, 1), (True, 1, 0, 1)]


def test_shorter_idle_time_cuts_at_each_pause():
    items = [message(0, 0), message(1, 10), message(2, 12), message(3, 13, None)]
    _, changes = diff_of(Other(idle_s=5), *items)
    assert changes == [(True, 1, 0, 0), (False, 1, 0, 2), (True, 2, 1, 2)]


def test_end_that_came_late_came_late_for_a_shorter_idle_time_too():
    items = [message(0, 0), message(1, 40, None)]
    assert diff_of(Other(idle_s=5), *items)[1] == []
    _, changes = diff_of(Other(idle_s=50), *items)
    assert changes == [(False, 2, 1, 0)], "the end closes the chunk itself"


def test_another_counter_counts_the_records_again():
    counter = WordCounter()
    items = ["a:one two three", "a:four five six", "a."]
    diff, changes = diff_of(Other(max_tokens=5, counter=counter), *items)
    assert changes == [(True, 1, 0, 0), (False, 1, 0, 1), (True, 2, 1, 1)]
    assert diff.new.token_count == 6


def test_record_that_was_bounded_by_its_length_is_counted_for_a_larger_budget():
    text = "word " * 5_000
    policy = ChunkPolicy(max_tokens=10)
    qwen = counter_named("qwen2.5")
    made = chunks_of(log_of(f"a:{text}", "a:x"), policy, counter=qwen)
    cut = Cut.of_seen(Seen(made[0]))
    assert cut.records[0].token_count < qwen.count(text)
    rechunking = Rechunking(Other(max_tokens=1_000_000))
    assert list(rechunking.take(cut)) == []
    assert list(rechunking.finish()) == []
    assert rechunking.diff.new.token_count == qwen.count(text)


def test_omitted_record_stands_alone_by_any_rule_and_keeps_its_tokens():
    policy = replace(POLICY, max_chunk_bytes=2300)
    items = ["a:x", "a:" + "x" * 300, "a:y", "a."]
    other = Other(max_tokens=1000, counter=WordCounter())
    diff, changes = diff_of(other, *items, policy=replace(policy, max_tokens=200), omit=(1,))
    assert changes == []
    assert diff.as_given_count == 1


def test_nothing_at_all_has_no_fill_ratio():
    assert diff_of(Other(max_tokens=5))[0].old.fill_ratio is None
