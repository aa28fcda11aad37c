"""Another counter, accepted in the middle of a log, counts whole chunks and no part of one."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.counters import COUNTERS, counter_named
from processor.protocol.chunking import ChunkerConfig
from processor.wire_models import decode_chunk
from tests.builders import WordCounter
from tests.history import Message, log_messages
from tests.property.one_log import WorkedLog
from tests.strategies import logs, policies
from tests.unit.proof.verifying import verify


@pytest.fixture(scope="module", autouse=True)
def words():
    """A second counter that costs nothing, known by name as a chunk gives it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(COUNTERS, WordCounter.name, WordCounter)
        yield
    counter_named.cache_clear()


def config_of(policy, name, *, bound=200_000):
    return ChunkerConfig(
        "records", policy, counter_named(name), max_replay_records=bound, accept_policy_change=True
    )


@given(logs(), policies, st.data())
def test_every_chunk_is_counted_and_recomputed_by_the_one_counter_that_it_names(log, policy, data):
    """Open records that the first worker counted and wrote down are counted anew."""
    broker = WorkedLog(log_messages(log))
    first = data.draw(st.integers(0, broker.end))
    bound = data.draw(st.sampled_from([0, 2, 5]))

    async def story():
        await broker.work(config_of(policy, "chars_over_four", bound=bound), first)
        told = len(broker.chunks)
        await broker.work(config_of(policy, "words"), broker.end)
        return told

    told = asyncio.run(story())
    names = [decode_chunk(it.value).token_counter for it in broker.chunks]
    assert names == ["chars_over_four"] * told + ["words"] * (len(names) - told)
    written = [
        Message(offset, it.key, it.value, 0, tuple(it.headers))
        for offset, it in enumerate(broker.chunks)
    ]
    report = verify(broker.log, written, recompute=True)
    assert report.is_clean, report.lines()
    assert report.recomputed_count == len(written)
