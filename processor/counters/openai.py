"""OpenAI's encodings, exactly: GitHub's Rust encoder, which brings the vocabularies along.

OpenAI's own tiktoken downloads them when it is first asked, and its pattern of o200k panics (an
error that no ``except Exception`` catches) at a million spaces in a row.
"""

from collections.abc import Sequence
from typing import Final

from processor.counters.extras import module_of_extra
from processor.counters.surrogates import without_surrogates


class OpenAI:
    """Counts with one of OpenAI's encodings; special tokens are ordinary text.

    Args:
        name: ``o200k`` or ``cl100k``.

    Raises:
        ConfigError: The extra ``openai-tokens`` is not installed.
    """

    #: Both vocabularies' longest token, 128 spaces.
    max_token_chars: Final = 128

    def __init__(self, name: str) -> None:
        self.name: Final = name
        bindings = module_of_extra("bpe_openai._bindings", "openai-tokens")
        # The public Encoding makes a list of the tokens, and times itself; this only counts.
        self._count = bindings.tokenizer_for_encoding(f"{name}_base").count

    def count(self, text: str) -> int:
        """Return the tokens of ``text``."""
        try:
            tokens: int = self._count(text)
        except UnicodeEncodeError:
            tokens = self._count(without_surrogates(text))
        return tokens

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """Return ``count`` of each."""
        return [self.count(text) for text in texts]
