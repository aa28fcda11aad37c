"""How a counter is chosen, and what it need not count."""

import subprocess
import sys
from pathlib import Path

import pytest

from processor.core.errors import ConfigError
from processor.counters import COUNTERS, FILE_COUNTERS, count_tokens, counter_named, has_counter
from processor.settings import Settings
from tests.builders import WordCounter

ROOT = Path(__file__).parents[3]


class FirstWords(WordCounter):
    """Knows no token longer than ten characters, and refuses to count what is above 30."""

    max_token_chars = 10

    def count(self, text):
        assert len(text) <= 30
        return super().count(text)


def test_default_counts_as_qwen_does():
    assert counter_named(Settings().token_counter).name == "qwen2.5"


@pytest.mark.parametrize("name", ["", "words", "hf", "hf:", "qwen2.5:x"])
def test_unknown_name_is_told_with_the_choices(name):
    assert not has_counter(name)
    with pytest.raises(
        ConfigError, match=f"TOKEN_COUNTER={name}: no such counter; choose from qwen"
    ):
        counter_named(name)


@pytest.mark.parametrize("name", [*COUNTERS, *(f"{it}:PATH" for it in FILE_COUNTERS)])
def test_counter_is_among_those_that_settings_and_documents_offer(name):
    assert name in Settings.model_fields["token_counter"].description
    assert f"`{name}`" in (ROOT / "README.md").read_text()
    assert f"\n| `{name}`" in (ROOT / "docs" / "tokens.md").read_text()


def test_counter_is_made_once():
    assert counter_named("qwen2.5") is counter_named("qwen2.5")


def test_text_that_must_be_above_the_budget_is_not_counted():
    texts = ["a b", "x" * 31, "x " * 15, "x" * 41]
    assert count_tokens(FirstWords(), texts, 3) == [2, 4, 15, 5]


def test_no_vocabulary_is_loaded_before_a_counter_is_asked_for():
    """The import path of ``faust -A processor.app`` runs for verbs that count nothing, too."""
    code = (
        "import processor.app, sys; print({'tokenizers', 'bpe_openai'} & {*sys.modules});"
        "from processor.counters import counter_named; print(counter_named.cache_info().misses)"
    )
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["set()", "0"]
