"""Another policy, accepted in the middle of a log, loses nothing and is kept from there on."""

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.core.errors import StateError
from processor.core.policy import ChunkPolicy
from processor.protocol.chunking import ChunkerConfig
from processor.wire_models import decode_chunk
from tests.builders import WordCounter
from tests.history import Message, log_messages
from tests.property.one_log import WorkedLog
from tests.strategies import logs, policies


def config_of(policy, *, bound=200_000):
    return ChunkerConfig(
        "records", policy, WordCounter(), max_replay_records=bound, accept_policy_change=True
    )


@given(logs(), policies, policies, st.data())
def test_a_changed_policy_loses_nothing_and_is_kept(log, before, after, data):
    """Whatever was checkpointed, and wherever the first worker and the second one end."""
    broker = WorkedLog(log_messages(log))
    first, second = sorted(data.draw(st.tuples(*[st.integers(0, broker.end)] * 2)))
    bound = data.draw(st.sampled_from([0, 2, 5]))

    async def story():
        await broker.work(config_of(before, bound=bound), first)
        told = len(broker.chunks)
        await broker.work(config_of(after), second, is_lost=True)
        await broker.work(config_of(after), broker.end)
        return told

    told = asyncio.run(story())
    chunks = [decode_chunk(it.value) for it in broker.chunks]
    for session in {it.session for it in chunks}:
        mine = [it for it in chunks if it.session == session]
        for previous, chunk in pairwise([None, *mine]):
            # Under the first policy, what is dropped is forgotten under the second one too.
            is_forgetting = before.forget_ended_after_s or after.forget_ended_after_s
            begins_anew = previous and previous.final and is_forgetting
            assert chunk.t == (previous.t if previous else 0) + 1 or (begins_anew and chunk.t == 1)
        out = [it.value_bytes for chunk in mine for it in chunk.records]
        sent = [
            it.value for it in broker.log if it.key.decode() == session and it.value is not None
        ]
        assert out == sent[: len(out)]
    for chunk in chunks[told:]:
        assert len(chunk.records) <= max(after.max_chunk_records, 1)
        assert chunk.token_count <= after.flush_tokens or len(chunk.records) == 1


def test_checkpointed_records_that_the_log_lost_are_not_judged_by_another_policy():
    """Nobody could count their tokens again, or tell when each came."""
    before, after = (config_of(ChunkPolicy(max_tokens=it), bound=0) for it in (9, 3))
    broker = WorkedLog([Message(number, b"s", b"a b", 0) for number in range(3)])

    async def story():
        await broker.work(before, 2)
        broker.log_start = 1
        with pytest.raises(StateError, match="open record of offset 0, which the log, from 1 on"):
            await broker.work(after, 3)

    asyncio.run(story())
