import sys

import pytest

from processor.core.errors import ConfigError
from processor.counters import counter_named
from processor.counters.openai import OpenAI
from processor.demo.transcripts import transcripts
from tests.unit.counters.references import fuzzed, openai_reference


@pytest.mark.parametrize("name", ["o200k", "cl100k"])
def test_fuzzed_strings_and_transcripts_are_counted_as_tiktoken_does(name):
    counter, count = counter_named(name), openai_reference(name)
    made = transcripts(300, 2, sessions=20, max_line_bytes=8_000)
    texts = [*fuzzed(3_000, 2), *(line.decode("utf-8", "replace") for _, line in made)]
    found = zip(texts, counter.count_all(texts), strict=True)
    assert [text for text, tokens in found if tokens != count(text)] == []


def test_text_is_counted_as_it_is_written():
    assert OpenAI("o200k").count("e\u0301") == 2


@pytest.mark.parametrize("name", ["o200k", "cl100k"])
def test_missing_extra_is_named(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "bpe_openai", None)
    monkeypatch.delitem(sys.modules, "bpe_openai._bindings", raising=False)
    counter_named.cache_clear()
    said = rf"TOKEN_COUNTER={name}: .*pip install 'poimen-processor\[openai-tokens\]'"
    with pytest.raises(ConfigError, match=said):
        counter_named(name)
