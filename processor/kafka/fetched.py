"""What any consumer has fetched, taken a fetch at a time, as the client's own raw objects."""

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer.fetcher import Fetcher, FetchResult, PartitionRecords
from aiokafka.errors import CorruptRecordException

from processor.protocol.port import LogRecord


async def take_fetched(
    reader: AIOKafkaConsumer, partition: TopicPartition, timeout_s: float
) -> list[LogRecord]:
    """Take what any consumer has fetched next for a partition, as the client's own objects.

    What ``getmany`` does, but for the dataclasses.

    Args:
        reader: The consumer.
        partition: One of its partitions.
        timeout_s: How long to wait where nothing has been fetched.

    Returns:
        The records, in order; none where there is nothing, or nothing but control records.

    Raises:
        KafkaError: The fetch failed for good.
    """
    fetcher: Fetcher = reader._fetcher  # noqa: SLF001
    if partition not in fetcher._records:  # noqa: SLF001
        await fetched(fetcher, timeout_s)
    return drained(fetcher, partition)


async def fetched(fetcher: Fetcher, timeout_s: float) -> None:
    """Wait until records have been fetched, at most ``timeout_s``."""
    waiter = fetcher._create_fetch_waiter()  # noqa: SLF001
    await asyncio.wait([waiter], timeout=timeout_s)
    if not waiter.done():
        waiter.cancel()


def drained(fetcher: Fetcher, partition: TopicPartition) -> list[Any]:
    """Take all that was fetched for ``partition`` and move its position past it."""
    result = fetcher._records.pop(partition, None)  # noqa: SLF001
    if result is None:
        return []
    fetcher._notify(fetcher._wait_consume_future)  # noqa: SLF001
    if not isinstance(result, FetchResult):
        result.check_raise()
    # False when it was fetched for another position or assignment.
    if not result.check_assignment(partition):
        return []
    records = _unpacked(result._partition_records)  # noqa: SLF001
    result._update_position()  # noqa: SLF001
    return records


def _unpacked(fetched: PartitionRecords) -> list[Any]:
    """Return the committed records that ``fetched`` holds, as the client's own objects.

    What ``PartitionRecords._unpack_records`` does, by batch: there, three Python calls and a copy
    for each record cost as much as all else that the client does for it.
    """
    records: list[Any] = []
    next_offset = fetched.next_fetch_offset
    aborted = fetched._aborted_producers  # noqa: SLF001
    while fetched._records.has_next():  # noqa: SLF001
        batch = fetched._records.next_batch()  # noqa: SLF001
        if fetched._check_crcs and not batch.validate_crc():  # noqa: SLF001
            message = f"{fetched._tp}: a batch does not fit its checksum"  # noqa: SLF001
            raise CorruptRecordException(message)
        if batch.producer_id is not None:
            fetched._consume_aborted_up_to(batch.base_offset)  # noqa: SLF001
            if batch.is_control_batch and fetched._contains_abort_marker(batch):  # noqa: SLF001
                aborted.discard(batch.producer_id)
        is_aborted = batch.is_transactional and batch.producer_id in aborted
        if not batch.is_control_batch and not is_aborted:
            # A fetch begins with the whole batch that its offset is in.
            records += (
                batch
                if batch.base_offset >= next_offset
                else [it for it in batch if it.offset >= next_offset]
            )
        # Not the last record's: a batch keeps its range when compaction or an abort empties it.
        next_offset = batch.next_offset
    fetched.next_fetch_offset = next_offset
    # Its iterator, never begun, refers back to it: the cycle would keep the fetch in memory.
    fetched._records_iterator = None  # noqa: SLF001
    return records
