import hashlib
import json
import sys

import pytest

from processor.core.errors import ConfigError
from processor.counters import counter_named
from processor.counters.hf import HuggingFace
from tests.unit.counters.references import fuzzed


def test_file_of_qwen_counts_as_qwen(tokenizer_json):
    texts = fuzzed(500, 6)
    assert HuggingFace(str(tokenizer_json)).count_all(texts) == counter_named("qwen2.5").count_all(
        texts
    )


def test_name_is_of_what_the_file_holds_and_not_of_where_it_lies(tokenizer_json, tmp_path):
    digits = hashlib.sha256(tokenizer_json.read_bytes()).hexdigest()[:12]
    copy = tmp_path / "tokenizer.json"
    copy.write_bytes(tokenizer_json.read_bytes())
    for file in (tokenizer_json, copy):
        assert counter_named(f"hf:{file}").name == f"hf:tokenizer.json@{digits}"


def test_file_may_be_pinned(tokenizer_json, tmp_path, monkeypatch):
    monkeypatch.chdir(tokenizer_json.parent)
    name = HuggingFace("tokenizer.json").name
    assert counter_named(name).name == name
    with pytest.raises(ConfigError, match=r"has the SHA-256 [0-9a-f]{12}, not 0123456789ab$"):
        counter_named(f"hf:{tokenizer_json}@0123456789ab")


def test_truncation_and_padding_of_the_file_are_left_aside(tokenizer_json, tmp_path):
    truncation = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    padding = {"strategy": {"Fixed": 50}, "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "!"}
    text = tokenizer_json.read_text()
    for name, wanted in (("truncation", truncation), ("padding", padding)):
        text = text.replace(f'"{name}": null', f'"{name}": {json.dumps(wanted)}')
    file = tmp_path / "other.json"
    file.write_text(text)
    assert HuggingFace(str(file)).count_all(["a b c d", "a"]) == [4, 1]


def test_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(
        ConfigError, match=r"TOKEN_COUNTER=hf:.*gone\.json: can't read .*gone\.json"
    ):
        counter_named(f"hf:{tmp_path}/gone.json")
    with pytest.raises(ConfigError, match=r"can't read .*: Is a directory"):
        counter_named(f"hf:{tmp_path}")


def test_file_that_is_no_tokenizer_is_named(tmp_path):
    file = tmp_path / "config.json"
    file.write_text('{"model_type": "qwen2"}')
    with pytest.raises(ConfigError, match=r"config\.json is no tokenizer\.json: "):
        counter_named(f"hf:{file}")


def test_missing_extra_is_named(tokenizer_json, monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigError, match=r"pip install 'poimen-processor\[hf-tokens\]'"):
        HuggingFace(str(tokenizer_json))
