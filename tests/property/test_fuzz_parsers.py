"""Any bytes give a value or the one error that is documented: no other, no hang, no memory."""

import ast
import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.property.damage import bounded, damaged
from tests.property.parsers import PARSERS

ROOT = Path(__file__).parents[2]
#: What turns bytes into values, as it is written.
DECODERS = {
    "json.loads",
    "json.load",
    "msgspec.json.decode",
    "msgspec.json.Decoder",
    "msgspec.msgpack.decode",
    "msgspec.msgpack.Decoder",
    "tomllib.loads",
    "tomllib.load",
    "message.ParseFromString",
}
#: Decode what this process has made itself, or what another row has read before.
INSIDE = {"processor.proof.recompute", "processor.demo.brokers", "processor.cli.verify"}


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
def test_any_bytes_give_a_value_or_the_documented_error(name, data):
    parser = PARSERS[name]
    value = data.draw(st.one_of(damaged(parser.samples), st.binary(max_size=40)))
    with bounded(), contextlib.suppress(parser.errors):
        parser.read(value)


@pytest.mark.parametrize("name", PARSERS)
def test_valid_bytes_are_read(name):
    parser = PARSERS[name]
    assert any(parser.read(sample) is not None for sample in parser.samples)


def decoding_modules():
    for path in sorted(ROOT.glob("processor/**/*.py")):
        names = {
            ast.unparse(it)
            for it in ast.walk(ast.parse(path.read_text()))
            if isinstance(it, ast.Attribute)
        }
        if names & DECODERS:
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts)


def test_every_module_that_decodes_is_fuzzed():
    """A module that begins to decode gets a row in ``PARSERS``."""
    fuzzed = {module for parser in PARSERS.values() for module in parser.modules}
    assert set(decoding_modules()) - INSIDE == fuzzed - {"processor.core.dormant"}
