"""What a chunk is cut by is one thing from the settings to the proof."""

from dataclasses import fields

import pytest

from processor.core.policy import ChunkPolicy
from processor.proof.chunk_rule import policy_of
from processor.settings import POLICY, Settings
from processor.wire import ChunkEncoder
from processor.wire_models import WirePolicy, decode_chunk
from tests.builders import chunk_all, told_records

#: ``split_on`` has one value; ``flush`` is ``idle_s`` to an operator.
RULE = {it.name for it in fields(ChunkPolicy) if it.init} - {"split_on", "flush"} | {"idle_s"}
#: A value of each that is not its default.
OTHER = {
    "max_tokens": 7,
    "idle_s": 1.5,
    "max_age_s": 2.5,
    "max_chunk_bytes": 8,
    "max_chunk_records": 9,
    "carry_headers": "event-time,user-id",
    "deduplicate_records": 5000,
    "forget_ended_after_s": 86400.0,
}


def test_every_number_of_the_policy_is_a_setting():
    assert set(POLICY) - {"token_counter"} == RULE


@pytest.mark.parametrize("field", sorted(RULE))
def test_setting_of_the_policy_arrives_in_it(field):
    assert Settings(**{field: OTHER[field]}).chunk_policy != Settings().chunk_policy


def test_chunks_name_every_number_of_the_policy():
    assert set(WirePolicy.__struct_fields__) == RULE - {"max_tokens"} | {"flush_tokens"}


@pytest.mark.parametrize("field", sorted(RULE))
def test_policy_that_a_chunk_names_is_that_which_cut_it(field):
    policy = Settings(**{field: OTHER[field]}).chunk_policy
    (chunk, *_) = chunk_all(told_records(b"1"), policy)
    line = ChunkEncoder(policy, "words", "records", 0).encode(chunk)
    assert policy_of(decode_chunk(line)) == policy
