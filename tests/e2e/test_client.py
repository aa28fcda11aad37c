import asyncio
from contextlib import aclosing, closing

import pytest

from processor.client import DigestError, GapError, RepeatError, read_chunks, read_chunks_sync
from tests.builders import chunk_lines
from tests.e2e.histories import send_chunks

PARTITIONS = 2
LINES = chunk_lines(*(b"w%d" % number for number in range(12)))
TS = list(range(1, 7))


def read_all(settings, **how):
    return list(read_chunks_sync(settings, follow=False, **how))


def read(settings, count, **how):
    with closing(read_chunks_sync(settings, **how)) as chunks:
        return [next(chunks).t for _ in range(count)]


def test_committed_chunks_are_read_to_the_byte(settings):
    send_chunks(settings, LINES[:3])
    send_chunks(settings, LINES[3:], commit=False)
    other = chunk_lines(b'{"a":1}', b"\xff", session="z")
    send_chunks(settings, other, session="z", partition=1)
    found = read_all(settings)
    assert [(it.session, it.t) for it in found] == [("s", 1), ("s", 2), ("s", 3), ("z", 1)]
    assert [it.line for it in found] == [*LINES[:3], *other]
    assert [it.value for it in found[-1].records] == [b'{"a":1}', b"\xff"]
    assert [it.session for it in read_all(settings, session="z")] == ["z"]


def test_a_reader_waits_for_what_comes(settings):
    async def run():
        async with aclosing(read_chunks(settings)) as chunks:
            coming = asyncio.ensure_future(anext(chunks))
            await asyncio.to_thread(send_chunks, settings, LINES)
            return [(await coming).t, *[(await anext(chunks)).t for _ in TS[1:]]]

    assert asyncio.run(run()) == TS


@pytest.mark.parametrize(
    ("spoil", "error", "t"),
    [
        (lambda lines: [lines[0], *lines[2:]], GapError, 3),
        (lambda lines: [*lines[:2], *lines[1:]], RepeatError, 2),
        (lambda lines: [it.replace(b'"w5"', b'"w6"') for it in lines], DigestError, 3),
    ],
)
def test_a_fault_is_raised_again_and_again_to_who_keeps_positions(settings, spoil, error, t):
    send_chunks(settings, spoil(LINES))
    kept = {}
    for _ in range(2):
        with pytest.raises(error) as raised:  # noqa: PT012 - a loop that ends by the error
            for it in read_chunks_sync(
                settings, group=settings.app_id, after=lambda chunk: kept.get(chunk.session)
            ):
                kept[it.session] = it.position
        assert raised.value.t == t


def test_a_group_goes_on_at_the_chunk_that_was_in_hand(settings):
    send_chunks(settings, LINES)
    group = settings.app_id
    assert read(settings, 3, group=group) == [1, 2, 3]
    assert read(settings, 2, group=group) == [3, 4]


def test_a_reader_that_keeps_positions_sees_each_chunk_once(settings):
    send_chunks(settings, LINES)
    kept = {}
    seen = []
    for count in (1, 2, 3):  # each time it ends with a chunk in hand
        with closing(
            read_chunks_sync(
                settings, group=settings.app_id, after=lambda chunk: kept.get(chunk.session)
            )
        ) as chunks:
            for _ in range(count):
                chunk = next(chunks)
                seen.append(chunk.t)
                kept[chunk.session] = chunk.position
    assert seen == TS


def test_members_of_a_group_share_the_partitions(settings):
    for partition in range(PARTITIONS):
        send_chunks(settings, LINES, partition=partition)

    async def member(found, count):
        async with aclosing(read_chunks(settings, group=settings.app_id)) as chunks:
            async for it in chunks:
                found.append((it.partition, it.t))
                if len(set(found)) == count:
                    return
                await asyncio.sleep(0.05)  # so that the second joins meanwhile

    async def run():
        found = []
        both = [asyncio.ensure_future(member(found, 12)) for _ in range(2)]
        await asyncio.wait(both, timeout=60, return_when=asyncio.FIRST_COMPLETED)
        for it in both:
            it.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        return found

    assert set(asyncio.run(run())) == {(p, t) for p in range(PARTITIONS) for t in TS}
