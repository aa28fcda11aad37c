"""How many records without a session are too many: a producer that forgot the key must be heard.

Counted record by record, so that no batch boundary matters, and kept in the partition's entry, so
that a restart does not forget and drain a little more each time. The share is that of the present
block of records and the one before it. A limit that is off counts nothing; set again, it begins
anew.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from processor.core.errors import RecordError, StateError
from processor.protocol.runs import Columns, Keys

#: The share is that of the last 500 to 1,000 records, and is judged from 100 on.
_BLOCK: Final = 500
_LEAST: Final = 100


class DeadLetterMeter(msgspec.Struct, array_like=True, frozen=True):
    """What the last records of a partition were, as of ``seen``.

    Attributes:
        in_a_row: Dead letters since the last record that was none.
        row_offset: Offset of the first of them.
        recent: Records of the present block.
        recent_dead: Dead letters among them.
        before: Records of the block before it.
        before_dead: Dead letters among those.
    """

    in_a_row: int = 0
    row_offset: int = 0
    recent: int = 0
    recent_dead: int = 0
    before: int = 0
    before_dead: int = 0


class Sessionless(NamedTuple):
    """A record without a session: how many records of its batch are before it, and why."""

    after: int
    offset: int
    error: RecordError


@dataclass(frozen=True, slots=True)
class DeadLetterLimit:
    """More dead letters than this stop the worker.

    Attributes:
        max_ratio: Their share of the recent records; 1 is no limit.
        max_in_a_row: Their number without another record between; 0 is no limit.
    """

    max_ratio: float = 1.0
    max_in_a_row: int = 0

    @property
    def is_off(self) -> bool:
        """Whether there is no limit at all."""
        return self.max_ratio >= 1 and not self.max_in_a_row

    def metered(
        self, log: Columns, keys: Keys, seen: int, meter: DeadLetterMeter, where: str
    ) -> DeadLetterMeter:
        """Return the meter after those records of ``log`` from offset ``seen`` on.

        Raises:
            StateError: One of them is one dead letter too many.
        """
        start = bisect_left(log.offsets, seen)
        sessionless = [
            Sessionless(index - start, log.offsets[index], keys.errors[key])
            for index, key in enumerate(log.keys if keys.errors else ())
            if index >= start and key in keys.errors
        ]
        return self.after(meter, len(log.offsets) - start, sessionless, where)

    def after(
        self, meter: DeadLetterMeter, count: int, sessionless: Sequence[Sessionless], where: str
    ) -> DeadLetterMeter:
        """Return the meter after the next records.

        Args:
            meter: The meter before them.
            count: How many they are.
            sessionless: Those without a session, in order.
            where: Topic and partition, for the error.

        Raises:
            StateError: One of them is one too many.
        """
        if self.is_off:
            return DeadLetterMeter()
        passed = 0
        for record in sessionless:
            meter = self._after_dead(_after_others(meter, record.after - passed), record.offset)
            self._check(meter, record, where)
            passed = record.after + 1
        return _after_others(meter, count - passed)

    def _after_dead(self, meter: DeadLetterMeter, offset: int) -> DeadLetterMeter:
        changed: dict[str, int] = {}
        if self.max_in_a_row:
            changed["in_a_row"] = meter.in_a_row + 1
            changed["row_offset"] = meter.row_offset if meter.in_a_row else offset
        if self.max_ratio < 1:
            changed["recent"] = meter.recent + 1
            changed["recent_dead"] = meter.recent_dead + 1
        return _rolled(msgspec.structs.replace(meter, **changed))

    def _check(self, meter: DeadLetterMeter, record: Sessionless, where: str) -> None:
        count = meter.recent + meter.before
        dead = meter.recent_dead + meter.before_dead
        if self.max_in_a_row and meter.in_a_row > self.max_in_a_row:
            what = f"{meter.in_a_row} records in a row, from offset {meter.row_offset} on"
        elif self.max_ratio < 1 and count >= _LEAST and dead > self.max_ratio * count:
            what = f"{dead} of the last {count} records"
        else:
            return
        message = (
            f"{where}@{record.offset}: {what}, have no session ({record.error.reason}: "
            f"{record.error}); a producer has probably lost its key. Nothing of this batch is "
            "committed. Fix the producer; to have these records set aside as dead letters, start "
            "again with PROCESSOR_MAX_DEAD_LETTER_RATIO=1 and "
            "PROCESSOR_MAX_CONSECUTIVE_DEAD_LETTERS=0, and set both back once they are"
        )
        raise StateError(message)


NO_LIMIT: Final = DeadLetterLimit()


def _after_others(meter: DeadLetterMeter, count: int) -> DeadLetterMeter:
    """Return the meter after records that have a session."""
    if not count:
        return meter
    return _rolled(
        msgspec.structs.replace(meter, in_a_row=0, row_offset=0, recent=meter.recent + count)
    )


def _rolled(meter: DeadLetterMeter) -> DeadLetterMeter:
    """Begin a new block where the present one is full."""
    blocks, recent = divmod(meter.recent, _BLOCK)
    if not blocks:
        return meter
    # Of several full blocks only the first may hold dead letters.
    before_dead = meter.recent_dead if blocks == 1 else 0
    return msgspec.structs.replace(
        meter, recent=recent, recent_dead=0, before=_BLOCK, before_dead=before_dead
    )
