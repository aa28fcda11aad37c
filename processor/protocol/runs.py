"""Raw records of a partition, to what the core takes: log times, and one run for each session.

Half of the worker's CPU is spent here and in what this calls, so it goes through a stretch of
records in columns, and what is the same for a session is done once for its run.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate, compress, repeat
from operator import itemgetter
from typing import Final, NamedTuple

from processor.core.errors import RecordError
from processor.core.policy import ChunkPolicy
from processor.core.records import Headers, Run, new_record
from processor.counters import TokenCounter
from processor.headers import chosen_headers, headers_json
from processor.protocol.blocks import Read
from processor.protocol.dead_letter import session_of
from processor.protocol.port import LogRecord

_LOG_APPEND_TIME: Final = 1
#: Records that are looked at together: all that is asked of them finds them in the cache.
_BLOCK: Final = 64
#: What is read in the place of an end of session, which has no value; nobody looks at it.
_NO_VALUE: Final = b"0"


class Columns(NamedTuple):
    """Records of a log by what they have, each asked once: a client's record makes it anew.

    Attributes:
        records: The records themselves.
        times_ms: The log time before the first, and at each.
        read: What was read of their values; anything for an end of session.
    """

    records: Sequence[LogRecord]
    keys: Sequence[bytes | None]
    values: Sequence[bytes | None]
    offsets: Sequence[int]
    timestamps_ms: Sequence[int]
    times_ms: Sequence[int]
    read: Read

    def part(self, start: int, stop: int) -> "Columns":
        """Return the records from ``start`` to before ``stop``."""
        rows = slice(start, stop)
        return Columns(
            self.records[rows],
            self.keys[rows],
            self.values[rows],
            self.offsets[rows],
            self.timestamps_ms[rows],
            self.times_ms[start : stop + 1],
            self.read.part(rows),
        )


class Keys(NamedTuple):
    """The session that each key names, or why it names none."""

    sessions: Mapping[bytes | None, str | None]
    errors: Mapping[bytes | None, RecordError]


class Stretch(NamedTuple):
    """Records without an end of session among them, grouped.

    Attributes:
        runs: Of each session its records, sessions in the order of their first one here.
        sessionless: Records without a session and why, in order.
        mismatched: Offsets and sessions of records that name another session than theirs.
    """

    runs: list[Run]
    sessionless: list[tuple[LogRecord, RecordError]]
    mismatched: list[tuple[int, str]]


def keys_of(keys: Iterable[bytes | None]) -> Keys:
    """Return what each key names."""
    sessions: dict[bytes | None, str | None] = dict.fromkeys(keys)
    errors: dict[bytes | None, RecordError] = {}
    for key in sessions:
        try:
            sessions[key] = session_of(key)
        except RecordError as error:
            errors[key] = error
    return Keys(sessions, errors)


def columns(
    records: Sequence[LogRecord],
    arrived_at_ms: int,
    before_ms: int,
    counter: TokenCounter,
    max_tokens: int,
) -> Columns:
    """Return ``records`` in columns, read, with the log time of each.

    Args:
        records: The next records of a partition.
        arrived_at_ms: The clock when they came.
        before_ms: The log time so far.
        counter: Counts the tokens.
        max_tokens: Says what is far above the budget.
    """
    keys: list[bytes | None] = []
    values: list[bytes | None] = []
    offsets: list[int] = []
    timestamps_ms: list[int] = []
    read = Read([], [], [], [])
    for start in range(0, len(records), _BLOCK):
        block = records[start : start + _BLOCK]
        in_block = [it.value for it in block]
        keys += [it.key for it in block]
        values += in_block
        offsets += [it.offset for it in block]
        timestamps_ms += [it.timestamp for it in block]
        read.add([_NO_VALUE if it is None else it for it in in_block], counter, max_tokens)
    times_ms = log_times_ms(records, timestamps_ms, arrived_at_ms, before_ms)
    return Columns(records, keys, values, offsets, timestamps_ms, times_ms, read)


def log_times_ms(
    records: Sequence[LogRecord],
    timestamps_ms: Sequence[int],
    arrived_at_ms: int,
    before_ms: int,
) -> list[int]:
    """Return the log time before the first record, and at each.

    Args:
        records: The next records of a partition.
        timestamps_ms: Their timestamps.
        arrived_at_ms: The clock when they came: where producers set timestamps, a later one
            counts as this, so that a wrong clock can't hold a chunk open.
        before_ms: The log time so far.
    """
    if timestamps_ms and max(timestamps_ms) > arrived_at_ms:
        timestamps_ms = [
            timestamp if it.timestamp_type == _LOG_APPEND_TIME else min(timestamp, arrived_at_ms)
            for it, timestamp in zip(records, timestamps_ms, strict=True)
        ]
    whole = [before_ms, *timestamps_ms]
    # A log's clock seldom steps back, and to see that costs a tenth of asking max() each time.
    return whole if whole == sorted(whole) else list(accumulate(whole, max))


def grouped(
    stretch: Columns,
    keys: Keys,
    policy: ChunkPolicy,
    left_out: AbstractSet[int] = frozenset(),
) -> Stretch:
    """Return the records of ``stretch`` by session.

    Args:
        stretch: Part of the log without an end of session.
        keys: What its keys name, and maybe others.
        policy: Says which headers go along.
        left_out: Offsets of records that are in no run.
    """
    sessions, errors = keys
    read = stretch.read
    named = list(map(sessions.get, stretch.keys))
    headers: Iterable[Headers] = repeat((), len(stretch.records))
    sizes = read.sizes
    if policy.carry_headers:
        headers = [chosen_headers(it.headers, policy.carry_headers) for it in stretch.records]
        sizes = [size + len(headers_json(it)) for size, it in zip(sizes, headers, strict=True)]
    made = list(
        map(
            new_record,
            zip(
                named,
                stretch.values,
                read.token_counts,
                stretch.offsets,
                stretch.timestamps_ms,
                sizes,
                read.carried,
                headers,
                strict=True,
            ),
        )
    )
    indexes_of: dict[bytes | None, list[int]] = defaultdict(list)
    for index, key in enumerate(stretch.keys):
        indexes_of[key].append(index)
    if left_out:
        indexes_of = _without(indexes_of, stretch.offsets, left_out)
    times_ms = stretch.times_ms
    at_ms = times_ms[1:]
    runs: list[Run] = []
    sessionless: list[tuple[int, RecordError]] = []
    for key, indexes in indexes_of.items():
        session = sessions[key]
        if session is None:
            sessionless += [(index, errors[key]) for index in indexes]
            continue
        if len(indexes) == 1:  # as most are where many sessions are open
            index = indexes[0]
            runs.append(Run(session, (made[index],), (at_ms[index],), (times_ms[index],)))
            continue
        runs.append(
            Run(
                session,
                [made[index] for index in indexes],
                [at_ms[index] for index in indexes],
                [times_ms[index] for index in indexes],
            )
        )
    sessionless.sort(key=itemgetter(0))
    aside = [(stretch.records[index], error) for index, error in sessionless]
    return Stretch(runs, aside, _mismatched(stretch, named, read.named))


def _without(
    indexes_of: Mapping[bytes | None, Sequence[int]],
    offsets: Sequence[int],
    left_out: AbstractSet[int],
) -> dict[bytes | None, list[int]]:
    """Return the indexes of each key but those left out; a key may have none left."""
    kept = {
        key: [it for it in indexes if offsets[it] not in left_out]
        for key, indexes in indexes_of.items()
    }
    return {key: indexes for key, indexes in kept.items() if indexes}


def _mismatched(
    stretch: Columns, expected: Sequence[str | None], named: Sequence[str]
) -> list[tuple[int, str]]:
    """Return offset and session of records that name a session, but nowhere their own."""
    # In C as far as no session is named.
    differing = [it for it in compress(range(len(named)), named) if named[it] != expected[it]]
    # A sub-agent's line may name its parent first; its own name elsewhere will do.
    return [
        (stretch.offsets[it], session)
        for it in differing
        if (session := expected[it])
        and (stretch.keys[it] or b"") not in (stretch.values[it] or b"")
    ]
