"""How long after a fault every partition moved on, from samples of the group's offsets."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Sample:
    """The committed offset of each partition, asked for and answered at these times (seconds)."""

    asked_at: float
    answered_at: float
    offsets: Mapping[int, int]


class Spread(NamedTuple):
    """Of the takeovers after faults of one kind, in seconds."""

    faults: int
    measured: int
    min_s: float
    median_s: float
    max_s: float


def takeover_s(samples: Iterable[Sample], fault_at: float) -> float | None:
    """Return when the last partition had moved past where it stood, in seconds after a fault.

    Where it stood is what the first sample says that was asked for after the fault: an older one
    may lack the last commits before it, which would look like progress. ``None`` when some
    partition did not move before the samples end.
    """
    later = (sample for sample in samples if sample.asked_at >= fault_at)
    stood = next(later, None)
    if stood is None:
        return None
    still = set(stood.offsets)
    for sample in later:
        still -= {at for at in still if sample.offsets[at] > stood.offsets[at]}
        if not still:
            return sample.answered_at - fault_at
    return None


def spreads(faults: Iterable[tuple[str, float]], samples: Sequence[Sample]) -> dict[str, Spread]:
    """Sum up takeovers by kind of fault; times are NaN for a kind of which none was measured.

    Args:
        faults: Of each its kind and when it came.
        samples: In order of time.
    """
    took: defaultdict[str, list[float | None]] = defaultdict(list)
    for kind, at in faults:
        took[kind].append(takeover_s(samples, at))
    return {kind: _spread(times) for kind, times in took.items()}


def _spread(times: Sequence[float | None]) -> Spread:
    known = sorted(time for time in times if time is not None) or [float("nan")]
    measured = sum(time is not None for time in times)
    return Spread(len(times), measured, known[0], median(known), known[-1])
