"""Raw records of a partition, to what the core takes: log times, and one run for each session.

Half of the worker's CPU is spent here and in what this calls, so it goes through a stretch of
records in columns, and what is the same for a session is done once for its run.
"""

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Final, NamedTuple

from processor.core.errors import RecordError
from processor.core.records import Record, Run
from processor.counters import TokenCounter, count_tokens
from processor.protocol.dead_letter import session_of
from processor.protocol.port import LogRecord
from processor.wire import read_value

_LOG_APPEND_TIME: Final = 1
# Record(...) goes through a Python function that namedtuple makes; this does not: 0.2 µs, not 0.3.
_new_record: Final = partial(tuple.__new__, Record)


class Stretch(NamedTuple):
    """Records without an end of session among them, grouped.

    Attributes:
        runs: Of each session its records, sessions in the order of their first one here.
        sessionless: Records without a session and why, in order.
    """

    runs: list[Run]
    sessionless: list[tuple[LogRecord, RecordError]]


def log_times_ms(records: Sequence[LogRecord], arrived_at_ms: int, before_ms: int) -> list[int]:
    """Return the log time before the first record, and at each.

    Args:
        records: The next records of a partition.
        arrived_at_ms: The clock when they came: where producers set timestamps, a later one
            counts as this, so that a wrong clock can't hold a chunk open.
        before_ms: The log time so far.
    """
    timestamps = [
        it.timestamp
        if it.timestamp_type == _LOG_APPEND_TIME or it.timestamp < arrived_at_ms
        else arrived_at_ms
        for it in records
    ]
    return list(accumulate(timestamps, max, initial=before_ms))


def grouped(
    records: Sequence[LogRecord], times_ms: Sequence[int], counter: TokenCounter
) -> Stretch:
    """Return ``records`` by session, their tokens counted and their bytes looked at.

    Args:
        records: A stretch of the log without an end of session.
        times_ms: The log time before the first record, and at each.
        counter: Counts the tokens.
    """
    read = [read_value(it.value or b"") for it in records]
    token_counts = count_tokens(counter, [text for text, _, _ in read])
    indexes_of: dict[bytes | None, list[int]] = defaultdict(list)
    for index, record in enumerate(records):
        indexes_of[record.key].append(index)
    runs: list[Run] = []
    sessionless: list[tuple[int, RecordError]] = []
    for key, indexes in indexes_of.items():
        try:
            session = session_of(key)
        except RecordError as error:
            sessionless += [(index, error) for index in indexes]
            continue
        held = []
        for index in indexes:
            record = records[index]
            _, carried, size_bytes = read[index]
            held.append(
                _new_record(
                    (
                        session,
                        record.value,
                        token_counts[index],
                        record.offset,
                        record.timestamp,
                        size_bytes,
                        carried,
                    )
                )
            )
        at_ms = [times_ms[index + 1] for index in indexes]
        runs.append(Run(session, held, at_ms, [times_ms[index] for index in indexes]))
    sessionless.sort(key=lambda it: it[0])
    return Stretch(runs, [(records[index], error) for index, error in sessionless])
