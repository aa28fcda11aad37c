"""Any tokenizer of Hugging Face: counts as the ``tokenizer.json`` of a model says."""

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from processor.core.errors import ConfigError
from processor.counters.extras import module_of_extra
from processor.counters.surrogates import without_surrogates

_HASH_DIGITS: Final = 12
_PINNED: Final = re.compile(rf"(.+)@([0-9a-f]{{{_HASH_DIGITS}}})", re.DOTALL)


class HuggingFace:
    """Counts with a ``tokenizer.json``; special tokens are ordinary text and none is added.

    Its name is ``hf:`` with the file's own name and the start of its SHA-256, so that a chunk says
    which tokenizer counted it, wherever the file lay. That name finds the same file again in the
    current directory.

    Args:
        path: The file; with ``@`` and 12 digits of its SHA-256 it must be that one.

    Raises:
        ConfigError: The extra ``hf-tokens`` is not installed, or the file is not there, is none
            that the library reads, or is another one.
    """

    def __init__(self, path: str) -> None:
        tokenizers = module_of_extra("tokenizers", "hf-tokens")
        pinned = _PINNED.fullmatch(path)
        file, digits = pinned.groups() if pinned else (path, "")
        try:
            content = Path(file).read_bytes()
        except OSError as error:
            message = f"can't read {file}: {error.strerror}; name a tokenizer.json"
            raise ConfigError(message) from error
        found = sha256(content).hexdigest()
        if not found.startswith(digits):
            message = f"{file} has the SHA-256 {found[:_HASH_DIGITS]}, not {digits}"
            raise ConfigError(message)
        self.name: Final = f"hf:{Path(file).name}@{found[:_HASH_DIGITS]}"
        try:
            self._tokenizer = tokenizers.Tokenizer.from_buffer(content)
        except Exception as error:  # the library raises no narrower one
            message = f"{file} is no tokenizer.json: {error}"
            raise ConfigError(message) from error
        # The file may ask for what its model's training wanted.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True

    def count(self, text: str) -> int:
        """Return the tokens of ``text``."""
        return self.count_all([text])[0]

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """Return ``count`` of each."""
        encode = self._tokenizer.encode_batch_fast
        try:
            encoded = encode([*texts], add_special_tokens=False)
        except TypeError:  # what it raises for a lone surrogate
            encoded = encode([*map(without_surrogates, texts)], add_special_tokens=False)
        return [len(it) for it in encoded]
