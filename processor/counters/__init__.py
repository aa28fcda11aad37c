"""Token counters: text in, int out. The tables name every one that settings can choose."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final, Protocol

from processor.core.errors import ConfigError
from processor.counters.chars_over_four import CharsOverFour
from processor.counters.hf import HuggingFace
from processor.counters.openai import OpenAI
from processor.counters.qwen2_5 import Qwen25


class TokenCounter(Protocol):
    """Counts the tokens of a text, as the model that reads the chunks would.

    One that is faster on many texts at once has a ``count_all`` too, which gives a list. One
    whose tokens stand for so many characters at most says so in ``max_token_chars``, so that a
    text far above a budget need not be counted. One that asks how long a text is, and nothing else,
    says so in ``counts_length_alone``: then it may be given ASCII as bytes.

    Attributes:
        name: Stands in every chunk that was counted with it.
    """

    @property
    def name(self) -> str:
        """What settings and chunks call it."""
        ...

    def count(self, text: str) -> int:
        """Return the tokens of ``text``, 0 or more; total on every string."""
        ...


COUNTERS: Final[dict[str, Callable[[], TokenCounter]]] = {
    "qwen2.5": Qwen25,
    "o200k": partial(OpenAI, "o200k"),
    "cl100k": partial(OpenAI, "cl100k"),
    "chars_over_four": CharsOverFour,
}
#: What reads a file, which the name gives behind a colon.
FILE_COUNTERS: Final[dict[str, Callable[[str], TokenCounter]]] = {"hf": HuggingFace}


def has_counter(name: str) -> bool:
    """Tell whether a counter has that name, be what it needs here or not."""
    kind, _, path = name.partition(":")
    return name in COUNTERS or (kind in FILE_COUNTERS and bool(path))


@cache  # a vocabulary takes a second and 120 MB
def counter_named(name: str) -> TokenCounter:
    """Return the counter that settings, or a chunk, call ``name``.

    Raises:
        ConfigError: There is none of that name, or what it needs is not here.
    """
    kind, _, path = name.partition(":")
    if not has_counter(name):
        choices = ", ".join([*COUNTERS, *(f"{it}:PATH" for it in FILE_COUNTERS)])
        message = f"PROCESSOR_TOKEN_COUNTER={name}: no such counter; choose from {choices}"
        raise ConfigError(message)
    try:
        return COUNTERS[name]() if name in COUNTERS else FILE_COUNTERS[kind](path)
    except ConfigError as error:
        message = f"PROCESSOR_TOKEN_COUNTER={name}: {error}"
        raise ConfigError(message) from error


def count_tokens(counter: TokenCounter, texts: Sequence[str], max_tokens: int) -> list[int]:
    """Return the tokens of each text, at least 1.

    Empty texts are common in real transcripts: a record counts at least one token, or they
    would keep a chunk open for ever.

    A text so long that it has more than ``max_tokens`` whatever it says is not counted: it gets
    the fewest tokens that its length allows, which are above ``max_tokens`` too. That depends on
    the text and the budget alone, so all who count with both agree.

    Args:
        counter: Counts them.
        texts: Of the records.
        max_tokens: Budget of a chunk.
    """
    most = getattr(counter, "max_token_chars", None)
    fewest = [-(-len(text) // most) for text in texts] if most else [0] * len(texts)
    if max(fewest, default=0) > max_tokens:
        short = [text for text, few in zip(texts, fewest, strict=True) if few <= max_tokens]
        counts = iter(_counted(counter, short))
        return [few if few > max_tokens else next(counts) for few in fewest]
    return _counted(counter, texts)


def texts_of(counter: TokenCounter, values: Sequence[bytes]) -> list[Any]:
    """Return the texts in UTF-8 bytes; for a counter of lengths, what is as long as each.

    Raises:
        UnicodeDecodeError: One is no UTF-8.
    """
    if getattr(counter, "counts_length_alone", False):
        # Two of three lines are ASCII, and need not be copied to know how long they are.
        return [it if it.isascii() else it.decode() for it in values]
    return [it.decode() for it in values]


def _counted(counter: TokenCounter, texts: Sequence[str]) -> list[int]:
    count_all = getattr(counter, "count_all", None)
    counts = count_all(texts) if count_all else map(counter.count, texts)
    return [it or 1 for it in counts]
