"""One ordered stream through the chunker, without a broker: the async adapter over the core."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

from processor.core.accumulator import SessionAccumulator
from processor.core.chunks import Chunk
from processor.core.policy import NEVER_MS, ChunkPolicy
from processor.core.records import Record
from processor.core.session_state import SessionState
from processor.counters import TokenCounter, count_tokens


class RecordSource(Protocol):
    """One ordered stream of records, ended or endless."""

    def records(self) -> AsyncIterator[Record]:
        """Return an iterator over the records, in order."""
        ...


async def chunks(
    source: RecordSource, policy: ChunkPolicy, counter: TokenCounter
) -> AsyncIterator[Chunk]:
    """Cut ``source`` into chunks as its records come; memory is the open chunk.

    A record with a timestamp closes a chunk by the log's time, as in the worker. While the
    source is silent, a chunk closes once its deadline is as far away as it was when its last
    record came, and is marked ``clock``. What is open when the source ends closes then.

    Args:
        source: The stream. Its first record names the session of all chunks.
        policy: When a chunk closes.
        counter: Counts the tokens of each record.

    Yields:
        Chunks with consecutive ``t`` from 1.

    Raises:
        Exception: Whatever the source raises goes on to the caller, the records still open
            in its attribute ``open_records``; chunks that were closed before are out.
    """
    held: SessionAccumulator | None = None
    log_time_ms = 0

    def wait_s() -> float | None:
        return _wait_s(held)

    try:
        async for record in _records_or_silence(source.records(), wait_s):
            if record is None:
                closed = held.tick(held.deadline_ms + 1) if held is not None else ()
            else:
                held = held or SessionAccumulator(SessionState.new(record.session), policy)
                log_time_ms = max(log_time_ms, _time_ms(record))
                text = record.value.decode("utf-8", "replace")
                (tokens,) = count_tokens(counter, [text], policy.max_tokens)
                closed = held.push(record._replace(token_count=tokens), log_time_ms)
            for chunk in closed:
                yield chunk
    except Exception as error:
        error.open_records = held.snapshot().records if held else ()  # type: ignore[attr-defined]  # any error may pass
        raise
    for chunk in held.finish() if held is not None else ():
        yield chunk


async def _records_or_silence(
    records: AsyncIterator[Record], wait_s: Callable[[], float | None]
) -> AsyncIterator[Record | None]:
    """Yield the records, and ``None`` whenever none came for ``wait_s()`` seconds."""
    # A timer that cancelled the pending anext would lose the record it is about to bring: the
    # task is kept, and waited for again.
    pending: asyncio.Future[Record] | None = None
    try:
        while True:
            timeout_s = wait_s()
            if pending is None and timeout_s is None:
                record = await anext(records)
            else:
                pending = pending or asyncio.ensure_future(anext(records))
                done, _ = await asyncio.wait((pending,), timeout=timeout_s)
                if not done:
                    yield None
                    continue
                record, pending = pending.result(), None
            yield record
    except StopAsyncIteration:
        return
    finally:
        if pending is not None:
            pending.cancel()


def _wait_s(held: SessionAccumulator | None) -> float | None:
    if held is None or held.held is None or held.deadline_ms >= NEVER_MS:
        return None
    return (held.deadline_ms - held.held.last_at_ms) / 1000


def _time_ms(record: Record) -> int:
    if record.timestamp_ms is not None:
        return record.timestamp_ms
    return round(asyncio.get_running_loop().time() * 1000)
