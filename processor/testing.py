"""Small real implementations for tests, this project's and its users'."""

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable
from typing import Final

from processor.core.records import Record
from processor.metrics import METRICS, MetricName

__all__ = ["CRASH", "FakeClock", "RecordingMetrics", "SourceCrashError", "VecSource"]


class SourceCrashError(Exception):
    """What ``CRASH`` raises."""


class _Crash:
    def __repr__(self) -> str:
        return "CRASH"


#: The source fails here, where this is an item of a ``VecSource``.
CRASH: Final = _Crash()


class VecSource:
    """A ``RecordSource`` over items in memory; ``CRASH`` among them raises when it is reached."""

    def __init__(self, items: Iterable[Record | _Crash]) -> None:
        self._items = items

    async def records(self) -> AsyncIterator[Record]:
        """Yield the records in order."""
        for item in self._items:
            if isinstance(item, _Crash):
                raise SourceCrashError
            yield item


class FakeClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now_ms: int = 1_764_500_000_000) -> None:
        self._now_ms = now_ms

    def now_ms(self) -> int:
        """Return Unix milliseconds."""
        return self._now_ms

    def advance(self, seconds: float) -> None:
        """Move the clock by ``seconds``, back if negative."""
        self._now_ms += round(seconds * 1000)


class RecordingMetrics:
    """Keeps every count by name and tags, and every observation by name."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.observations: defaultdict[str, list[float]] = defaultdict(list)

    def increment(self, name: MetricName, value: int = 1, **tags: str) -> None:
        """Add ``value`` to the counter of this name and these tags' values."""
        self.counts[name, *(tags[it] for it in METRICS[name].tags)] += value

    def observe(self, name: MetricName, value: float) -> None:
        """Keep ``value`` behind those observed before."""
        self.observations[name].append(value)
