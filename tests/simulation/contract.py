"""What the protocol takes for granted of a broker: one suite for the simulated and the real one.

A case is a coroutine over a ``side``, which has one input partition with its topics, fresh:

- ``owner()`` makes another ``PartitionBroker`` of it, ``close()`` ends them all;
- ``append(value)`` writes a record; within ``transaction(commit=…)`` the records are in one;
- ``read(topic)`` returns the committed values, ``ends(topic)`` high watermark and last stable
  offset;
- ``limit`` is what the chunks topic takes (bytes), ``moments_s`` when to give up a commit.
"""

import asyncio
import contextlib
import random

import pytest

from processor.core.errors import FencedError, ProcessorError
from processor.protocol.loading import all_entries
from processor.protocol.port import Message, TooLargeError, Transaction
from tests.simulation.broker import CHANGELOG, CHUNKS, DEAD_LETTERS

CASES = []


def case(function):
    CASES.append(pytest.param(function, id=function.__name__))
    return function


def transaction(chunk=b"chunk", *, next_offset=0, lone_offset=None, **entries):
    """Return a transaction with one chunk, one dead letter, and these changelog entries."""
    return Transaction(
        [Message(b"s1", chunk, (), lone_offset=lone_offset)],
        {name.encode(): value for name, value in entries.items()},
        [Message(None, b"lost", ())],
        next_offset,
    )


async def next_owner(side):
    """Return the next owner: once it has fenced, whatever was before it is decided."""
    owner = side.owner()
    await owner.fence()
    return owner


@case
async def everything_of_a_transaction_is_there_once_it_is_committed(side):
    owner = await next_owner(side)
    await owner.commit(transaction(b"one", next_offset=3, s1=b"state"))
    owner = await next_owner(side)
    assert await side.read(CHUNKS) == [b"one"]
    assert await side.read(DEAD_LETTERS) == [b"lost"]
    assert await all_entries(owner) == {b"s1": b"state"}
    assert (await owner.survey([])).committed == 3


@case
async def commit_marker_takes_an_offset(side):
    owner = await next_owner(side)
    await owner.commit(transaction(b"one"))
    assert await side.ends(CHUNKS) == (2, 2)
    await owner.commit(transaction(b"two"))
    assert await side.ends(CHUNKS) == (4, 4)
    assert await side.read(CHUNKS) == [b"one", b"two"]


@case
async def changelog_gives_the_latest_entry_of_each_key(side):
    owner = await next_owner(side)
    await owner.commit(transaction(s1=b"old", s2=b"gone", s3=b"kept"))
    await owner.commit(transaction(s1=b"new", s2=None))
    assert await all_entries(owner) == {b"s1": b"new", b"s3": b"kept"}


@case
async def newer_owner_refuses_the_older(side):
    older = await next_owner(side)
    await older.commit(transaction(b"one", next_offset=1))
    newer = await next_owner(side)
    with pytest.raises(FencedError):
        await older.commit(transaction(b"two", next_offset=2))
    await newer.commit(transaction(b"three", next_offset=3))
    last = await next_owner(side)
    assert await side.read(CHUNKS) == [b"one", b"three"]
    assert (await last.survey([])).committed == 3


@case
async def record_that_is_too_large_names_itself_and_nothing_is_written(side):
    owner = await next_owner(side)
    large = random.Random(1).randbytes(2 * side.limit)  # noqa: S311 - does not compress
    with pytest.raises(TooLargeError) as refused:
        await owner.commit(transaction(large, lone_offset=41, next_offset=42, s1=b"state"))
    assert refused.value.offset == 41
    await owner.discard()
    owner = await next_owner(side)
    assert await all_entries(owner) == {}
    assert await side.read(CHUNKS) == await side.read(DEAD_LETTERS) == []
    assert (await owner.survey([])).committed is None


@case
async def open_transaction_hides_what_comes_after_it_until_the_next_fence_aborts_it(side):
    owner = await next_owner(side)
    large = random.Random(2).randbytes(2 * side.limit)  # noqa: S311
    with pytest.raises(TooLargeError):
        await owner.commit(transaction(large, lone_offset=41, s1=b"state"))
    high_watermark, stable_end = await side.ends(CHANGELOG)
    assert stable_end < high_watermark
    owner = await next_owner(side)
    high_watermark, stable_end = await side.ends(CHANGELOG)
    assert stable_end == high_watermark == 2
    assert await all_entries(owner) == {}


@case
async def commit_given_up_at_any_moment_lands_whole_or_not_at_all(side):
    owner, whole = await next_owner(side), []
    for n, moment_s in enumerate(side.moments_s):
        wanted = transaction(b"%d" % n, next_offset=n, s1=b"%d" % n)
        with contextlib.suppress(TimeoutError, ProcessorError):
            async with asyncio.timeout(moment_s):
                await owner.commit(wanted)
        await owner.discard()
        owner = await next_owner(side)
        chunks, entries = await side.read(CHUNKS), await all_entries(owner)
        if entries.get(b"s1") == b"%d" % n:
            whole.append(n)
        assert chunks == [b"%d" % it for it in whole]
        assert (await owner.survey([])).committed == (whole[-1] if whole else None)
    assert whole


@case
async def survey_tells_where_the_log_stands(side):
    owner = side.owner()
    for value in (b"a", b"b"):
        await side.append(value)
    found = await owner.survey([1, 7])
    assert (found.partition_count, found.log_start, found.stable_end) == (1, 0, 2)
    assert found.committed is None
    assert found.timestamps[1] > 0
    assert 7 not in found.timestamps


@case
async def open_transaction_of_a_producer_ends_the_stable_log_before_it(side):
    owner = side.owner()
    await side.append(b"before")
    async with side.transaction(commit=False):
        await side.append(b"hidden")
        assert (await owner.survey([])).stable_end == 1
    found = await owner.survey([1])
    assert found.stable_end == 3
    assert found.timestamps == {1: None}
