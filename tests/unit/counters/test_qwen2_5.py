import hashlib
import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from processor.counters import counter_named
from processor.demo.transcripts import transcripts
from tests.unit.counters.references import fuzzed, qwen_reference, qwen_vocabulary

CORPUS = os.environ.get("PROCESSOR_TEST_CORPUS")
CHARACTERS = map(chr, [*range(0xD800), *range(0xE000, 0x110000)])
ODD = [
    it for it in CHARACTERS if unicodedata.combining(it) or unicodedata.normalize("NFD", it) != it
]
COUNT_THREADS = """
from pathlib import Path
from processor.counters import counter_named
counter_named("qwen2.5").count_all(["a line of some words " * 50] * 64)
print(len(list(Path("/proc/self/task").iterdir())))
"""


@pytest.fixture(scope="module")
def counter():
    return counter_named("qwen2.5")


def differences(counter, texts):
    """Texts that the reference counts otherwise."""
    count = qwen_reference()
    found = zip(texts, counter.count_all(texts), strict=True)
    return [text for text, tokens in found if tokens != count(text)]


def test_vocabulary_is_the_one_that_qwen_published():
    """The file of the model repository Qwen/Qwen-72B, whose tokens Qwen2.5 has kept."""
    digest = hashlib.sha256(qwen_vocabulary()).hexdigest()
    assert digest == "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186"


def test_ten_thousand_fuzzed_strings_are_counted_as_the_reference_does(counter):
    assert differences(counter, fuzzed(10_000, 1)) == []


def test_transcripts_are_counted_as_the_reference_does(counter):
    made = transcripts(600, 2, sessions=20, max_line_bytes=8_000)
    texts = [line.decode("utf-8", "replace") for _, line in made]
    assert differences(counter, texts) == []


@pytest.mark.skipif(CORPUS is None, reason="PROCESSOR_TEST_CORPUS names no folder of *.jsonl")
def test_corpus_is_counted_as_the_reference_does(counter):
    for file in sorted(Path(CORPUS).rglob("*.jsonl")):
        texts = file.read_bytes().decode("utf-8", "replace").split("\n")
        assert differences(counter, texts) == []


def test_text_is_brought_into_nfc_first(counter):
    assert counter.count("e\u0301") == counter.count("\u00e9") == 1
    assert counter.count("\u1112\u1161\u11ab") == counter.count("\ud55c") == 1
    assert counter.count("\u212a") == counter.count("K")


def test_every_character_is_normalised_as_the_reference_does(counter):
    """Python knows marks that the reference takes for letters."""
    assert differences(counter, [f"{it}a{it}\u0316\u0301e\u0301{it}" for it in ODD]) == []


def test_nfc_makes_two_bytes_of_at_most_three_characters():
    """What ``max_token_chars`` rests on: the longest token has 128 bytes."""
    for character in ODD:
        whole = unicodedata.normalize("NFC", character)
        parts = unicodedata.normalize("NFD", whole)
        assert 2 * len(parts) <= 3 * len(whole.encode())


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the threads")
def test_counting_takes_no_threads_beside_the_callers():
    """Symptom: `qwen2.5` took 1.7 times the CPU that its counting needs, spent in idle threads."""
    told = subprocess.run(  # noqa: S603 - our own words
        [sys.executable, "-c", COUNT_THREADS], capture_output=True, check=True, text=True
    )
    assert told.stdout.split() == ["1"]
