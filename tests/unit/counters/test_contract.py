"""What every counter keeps, whatever text it is given."""

import base64
import os
import random
import time

import pytest

from processor.counters import count_tokens, counter_named
from tests.unit.counters.references import fuzzed

#: What has stopped or slowed a tokenizer: a pattern that backtracks, one merge over all, a sort.
HOSTILE = {
    "spaces": lambda share: " " * int(2_000_000 * share),
    "one letter": lambda share: "x" * int(2_000_000 * share),
    "base64": lambda share: base64.b64encode(
        random.Random(1).randbytes(int(7_500_000 * share))  # noqa: S311 - no secret
    ).decode(),
    "line feeds": lambda share: "\n" * int(1_000_000 * share),
    "line breaks": lambda share: "\r\n" * int(100_000 * share),
    "marks out of order": lambda share: "e" + "\u0301\u0316" * int(150_000 * share),
    "letters with marks": lambda share: "e\u0316\u0301" * int(100_000 * share),
    "nul": lambda share: "\0" * int(200_000 * share),
    "replaced bytes": lambda share: (b"\xff" * int(200_000 * share)).decode("utf-8", "replace"),
    "lone surrogates": lambda share: "\ud83d" * int(100_000 * share),
    "digits": lambda share: "1" * int(200_000 * share),
    "special tokens": lambda share: "<|im_start|><|endoftext|>" * int(10_000 * share),
}
#: What the library itself does at 1 MB a second, and so in a fifth of the size.
SLOW = {("hf", "base64"): 0.2}


def timed(counter, text):
    """Return the tokens and the CPU seconds that they took."""
    before = time.process_time()
    tokens = counter.count(text)
    return tokens, time.process_time() - before


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_counted_in_time_that_grows_with_its_length(counter, name):
    """Ten times the text takes ten times as long; a hundred times would be quadratic."""
    make, share = HOSTILE[name], SLOW.get((counter.name.partition(":")[0], name), 1)
    few, tenth_s = timed(counter, make(0.1 * share))
    many, whole_s = timed(counter, make(share))
    assert 9 * few < many < 11 * few
    assert whole_s < 40 * max(tenth_s, 0.02)


def test_texts_counted_together_have_the_counts_of_each(counter):
    texts = ["", " ", "e\u0301", "\ud83d", *fuzzed(500, 3)]
    counts = [counter.count(text) for text in texts]
    together = counter.count_all(texts) if hasattr(counter, "count_all") else counts
    assert together == counts
    assert count_tokens(counter, tuple(texts), 10_000) == [count or 1 for count in counts]


def test_empty_record_counts_one_token(counter):
    assert count_tokens(counter, [""], 10) == [1]
    assert count_tokens(counter, [], 10) == []


def test_any_bytes_are_counted_and_read_with_replacement(counter):
    rng = random.Random(4)  # noqa: S311 - no secret
    values = [rng.randbytes(rng.randint(0, 100)) for _ in range(300)]
    counts = count_tokens(counter, [value.decode("utf-8", "replace") for value in values], 1_000)
    assert min(counts) >= 1
    invalid, shown = b"na\xefve".decode("utf-8", "replace"), "na\ufffdve"
    assert counter.count(invalid) == counter.count(shown)


def test_lone_surrogate_counts_as_the_record_of_its_bytes(counter):
    if getattr(counter, "counts_length_alone", False):
        pytest.skip("counts characters")
    read = "a\ud83db".encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    assert counter.count("a\ud83db") == counter.count(read)


@pytest.mark.parametrize(
    "special", ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|endofprompt|>"]
)
def test_special_token_is_ordinary_text(counter, special):
    assert counter.count(special) > 2
    assert counter.count(special * 10) > 2 * 10


def test_text_above_the_budget_by_its_length_is_not_counted(counter):
    most = getattr(counter, "max_token_chars", None)
    if most is None:
        pytest.skip("counts every text")
    text = " " * (most * 10)
    assert counter.count(text) >= 10
    assert count_tokens(counter, ["a", text, text + " ", "b"], 10) == [
        1,
        counter.count(text),
        11,
        1,
    ]


def test_token_stands_for_no_more_characters_than_the_counter_says(counter):
    most = getattr(counter, "max_token_chars", None)
    if most is None:
        pytest.skip("counts every text")
    for text in [*fuzzed(500, 5), *(make(0.01) for make in HOSTILE.values())]:
        assert counter.count(text) * most >= len(text)


def test_name_stands_in_chunks_and_names_the_counter_again(counter, tokenizer_json, monkeypatch):
    monkeypatch.chdir(tokenizer_json.parent)
    assert counter_named(counter.name).name == counter.name
    assert os.sep not in counter.name
