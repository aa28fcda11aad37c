"""Token counters: text in, int out. The table names every one that settings can choose."""

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from processor.core.errors import ConfigError
from processor.counters.chars_over_four import CharsOverFour


class TokenCounter(Protocol):
    """Counts the tokens of a text, as the model that reads the chunks would.

    One that is faster on many texts at once has a ``count_all`` too, which gives a list.

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


COUNTERS: Final[dict[str, Callable[[], TokenCounter]]] = {"chars_over_four": CharsOverFour}


def counter_named(name: str) -> TokenCounter:
    """Return the counter that settings call ``name``.

    Raises:
        ConfigError: There is none of that name.
    """
    make = COUNTERS.get(name)
    if make is None:
        message = (
            f"PROCESSOR_TOKEN_COUNTER={name}: no such counter; choose from {', '.join(COUNTERS)}"
        )
        raise ConfigError(message)
    return make()


def count_tokens(counter: TokenCounter, texts: Iterable[str]) -> list[int]:
    """Return the tokens of each text, at least 1.

    Empty texts are common in real transcripts: a record counts at least one token, or they
    would keep a chunk open for ever.
    """
    count = getattr(counter, "count_all", None)
    counts: Iterable[int] = count(texts) if count else map(counter.count, texts)
    return [it or 1 for it in counts]
