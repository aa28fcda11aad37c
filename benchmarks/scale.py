"""What a record costs as sessions grow long, many, and silent: the worker without a broker.

Every size is measured in a process of its own, with the worker's thresholds of the garbage
collector and batches as large as its fetches. CPU is that of the process; figures of one run
compare with each other, not with those of another machine.
"""

import multiprocessing
import os
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import click

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from processor.core.dormant import DormantSessions  # noqa: E402 - needs the path above
from processor.core.policy import ChunkPolicy, OrIdle  # noqa: E402 - likewise
from processor.core.session_state import SessionState  # noqa: E402 - likewise
from processor.counters import CharsOverFour  # noqa: E402 - likewise
from processor.ops.memory import tune_memory  # noqa: E402 - likewise
from processor.protocol.changelog import encode_session  # noqa: E402 - likewise
from processor.protocol.chunking import ChunkerConfig  # noqa: E402 - likewise
from processor.protocol.job import Opened  # noqa: E402 - likewise
from processor.protocol.loading import SessionEntries  # noqa: E402 - likewise
from processor.protocol.port import Batch, Head, Survey  # noqa: E402 - likewise
from processor.protocol.start_checks import first_entry  # noqa: E402 - likewise

BATCH_RECORDS: Final = 2000
MEASURED_RECORDS: Final = 100_000
DAY_MS: Final = 86_400_000
DAY_RECORDS: Final = 1_000_000
#: A batch of the day; each reaches the end of the log, as a worker that keeps up does.
DAY_BATCH_MS: Final = 30_000
#: Sessions that have records at a time, and how many of these each has, that day.
DAY_SESSIONS: Final = 250
DAY_SESSION_RECORDS: Final = 50
_START_MS: Final = 1_750_000_000_000
_LINE: Final = '{"type":"assistant","n":%d,"text":"%s"}'
_WORDS: Final = "the quick brown fox jumps over the lazy dog and "
_DIGEST: Final = bytes(32)
_MB: Final = 1 << 20


class Line(NamedTuple):
    """A record as it is fetched."""

    offset: int
    timestamp: int
    key: bytes
    value: bytes | None
    timestamp_type: int = 1
    headers: tuple[tuple[str, bytes], ...] = ()


class Part(NamedTuple):
    """One way to grow.

    Attributes:
        grows: What does.
        sizes: How far.
        measure: Takes a size; returns figures by what they are, the same for every size.
    """

    grows: str
    sizes: Sequence[int]
    measure: Callable[[int], dict[str, float]]


class Row(NamedTuple):
    """The figures of one size."""

    grows: str
    size: int
    figures: dict[str, float]


class Feeder:
    """One partition's state, fed records of 1 KB, all it stages taken off again and again.

    Args:
        policy: When chunks close.
    """

    def __init__(self, policy: ChunkPolicy) -> None:
        config = ChunkerConfig("records", policy, CharsOverFour())
        entry = first_entry(Survey(1, 0, 0, None), config)
        self.state = config.restore(
            Opened(0, "records[0]", entry, config.new_changelog(), 0, frozenset())
        )
        self.input_bytes = 0
        self.changelog_bytes = 0
        self._values = [_value(number) for number in range(500)]

    def feed(self, keys: Sequence[bytes], at_ms: int, ended: Sequence[bytes] = ()) -> None:
        """Feed one record for each key, then ends of sessions; nothing is left in the log."""
        values, first = self._values, self.state.position
        offsets = count(first)
        lines = [
            Line(offset, at_ms, key, values[offset % 500])
            for key, offset in zip(keys, offsets, strict=False)
        ]
        lines += [Line(first + len(keys) + n, at_ms, key, None) for n, key in enumerate(ended)]
        stop = first + len(lines)
        self.state.feed(Batch(0, 1, first, stop, lines, at_ms, Head(at_ms, stop)))
        self.input_bytes += sum(len(line.value or b"") for line in lines)
        taken = self.state.take(at_ms)
        if taken is not None:
            entries = taken[0].entries.items()
            self.changelog_bytes += sum(len(key) + len(value or b"") for key, value in entries)

    def feed_all(self, keys: Sequence[bytes]) -> float:
        """Feed so many records in batches; return the CPU of each (µs)."""
        began_s = time.process_time()
        for start in range(0, len(keys), BATCH_RECORDS):
            self.feed(keys[start : start + BATCH_RECORDS], _START_MS)
        return (time.process_time() - began_s) / len(keys) * 1e6


def _value(number: int) -> bytes:
    return (_LINE % (number, _WORDS * 20)).encode()


def _key(number: int) -> bytes:
    """Return a name as long as a UUID."""
    return b"%08x-0000-4000-8000-%012x" % (number * 2654435761 % 2**32, number)


def long_session(size: int) -> dict[str, float]:
    """Measure sessions of so many records each, one after the other."""
    feeder = Feeder(ChunkPolicy())
    sessions = max(1, MEASURED_RECORDS // size)
    took = [feeder.feed_all([_key(number)] * size) for number in range(sessions)]
    return {"µs a record": sum(took) / sessions, "peak MB": _peak_mb()}


def open_sessions(size: int) -> dict[str, float]:
    """Measure records that come at random for so many sessions, each with some open."""
    chance = random.Random(size)  # noqa: S311 - nobody has to guess it
    feeder = Feeder(ChunkPolicy(max_tokens=1000))
    keys = [_key(number) for number in range(size)]
    before_mb = _now_mb()
    # The fifth record closes a chunk of four: a quarter of the sessions each has one to four.
    for have in range(4):
        of_turn = [key for number, key in enumerate(keys) if number % 4 >= have]
        chance.shuffle(of_turn)
        feeder.feed_all(of_turn)
    took_mb = _now_mb() - before_mb
    written, read = feeder.changelog_bytes, feeder.input_bytes
    figure = feeder.feed_all(chance.choices(keys, k=MEASURED_RECORDS))
    written, read = feeder.changelog_bytes - written, feeder.input_bytes - read
    return {
        "µs a record": figure,
        "changelog % of input": 100 * written / read,
        "bytes an open session, values apart": took_mb * _MB / size,
    }


def dormant_sessions(size: int) -> dict[str, float]:
    """Measure so many sessions with nothing open, as the changelog brings them."""
    entry = encode_session(SessionState("", 7, _DIGEST, 1234567))
    changelog = SessionEntries()
    before_mb, slowest_s, began_s = _now_mb(), 0.0, time.process_time()
    for start in range(0, size, BATCH_RECORDS):
        fetched = [(_key(number), entry) for number in range(start, start + BATCH_RECORDS)]
        at_s = time.process_time()
        changelog.take(fetched)
        slowest_s = max(slowest_s, time.process_time() - at_s)
    took_s = time.process_time() - began_s
    grown_mb, peak_mb = _now_mb() - before_mb, _peak_mb() - before_mb
    sessions = changelog.dormant
    chance = random.Random(size)  # noqa: S311 - likewise
    asked = [_key(chance.randrange(size)).decode() for _ in range(MEASURED_RECORDS)]
    return {
        "bytes each": grown_mb * _MB / size,
        "at the peak": peak_mb * _MB / size,
        "k restored for each CPU-s": size / took_s / 1e3,
        "longest pause ms": slowest_s * 1e3,
        "µs to look up": _us_each(sessions.get, asked),
        "µs to wake and sleep": _us_each(lambda key: _wake_and_sleep(sessions, key), asked),
    }


def _wake_and_sleep(sessions: DormantSessions, key: str) -> None:
    state = sessions.pop(key)
    if state is not None:
        name = key.encode()
        sessions.put(name, state.t, state.next_offset, state.digest, ended=state.ended)


def _us_each(call: Callable[[str], object], keys: Sequence[str]) -> float:
    began_s = time.process_time()
    for key in keys:
        call(key)
    return (time.process_time() - began_s) / len(keys) * 1e6


def day(hours: int) -> dict[str, float]:
    """Stream a day's records up to that hour, in which sessions come, and end or fall silent."""
    chance = random.Random(1)  # noqa: S311 - likewise
    feeder = Feeder(ChunkPolicy(flush=OrIdle(300)))
    before_mb = _now_mb()
    names = count()
    live = [next(names) for _ in range(DAY_SESSIONS)]
    per_batch = DAY_RECORDS * DAY_BATCH_MS // DAY_MS
    for at_ms in range(0, DAY_MS * hours // 24, DAY_BATCH_MS):
        keys = [_key(it) for it in chance.choices(live, k=per_batch)]
        leaving = chance.sample(range(DAY_SESSIONS), per_batch // DAY_SESSION_RECORDS)
        # Every other one is ended, the rest are only heard of no more.
        ended = [_key(live[it]) for it in leaving if it % 2]
        for it in leaving:
            live[it] = next(names)
        feeder.feed(keys, _START_MS + at_ms, ended)
    sessions = feeder.state.sessions
    grown_mb = _now_mb() - before_mb
    packed_mb = sessions.dormant_bytes / _MB
    return {
        "open sessions": sessions.open_session_count,
        "open records": sessions.open_record_count,
        "sessions ever": len(sessions),
        "MB beyond an empty worker": grown_mb,
        "of it packed sessions": packed_mb,
        "the rest": grown_mb - packed_mb,
    }


def _now_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / _MB


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


PARTS: Final = {
    "session": Part("records of a session", (1_000, 10_000, 100_000, 1_000_000), long_session),
    "open": Part("open sessions", (100, 10_000, 100_000, 1_000_000), open_sessions),
    "dormant": Part("dormant sessions", (100_000, 1_000_000, 10_000_000), dormant_sessions),
    "day": Part("hours of a day", (1, 6, 12, 24), day),
}


def measure_scale(names: Sequence[str], say: Callable[[str], None]) -> Iterator[Row]:
    """Measure parts, each size in a process of its own.

    Args:
        names: Of ``PARTS``.
        say: Told how far it is.
    """
    spawned = multiprocessing.get_context("spawn")
    for part in (PARTS[name] for name in names):
        for size in part.sizes:
            say(f"{part.grows}: {size:,}")
            with ProcessPoolExecutor(1, spawned, tune_memory) as pool:
                figures = pool.submit(part.measure, size).result()
            say(", ".join(f"{name} {it:,.4g}" for name, it in figures.items()))
            yield Row(part.grows, size, figures)


def scale_tables(rows: Sequence[Row]) -> str:
    """Return a Markdown table for each part."""
    lines: list[str] = []
    for grows in dict.fromkeys(row.grows for row in rows):
        of_part = [row for row in rows if row.grows == grows]
        lines += ["", f"| {' | '.join([grows, *of_part[0].figures])} |"]
        lines.append("| --- " * (1 + len(of_part[0].figures)) + "|")
        lines += [
            f"| {' | '.join([f'{row.size:,}', *(f'{it:,.4g}' for it in row.figures.values())])} |"
            for row in of_part
        ]
    return "\n".join(lines[1:])


@click.command()
@click.argument("parts", nargs=-1, type=click.Choice(list(PARTS)))
def main(parts: Sequence[str]) -> None:
    """Measure PARTS, or all of them, and print tables."""
    rows = list(measure_scale(parts or list(PARTS), lambda line: click.echo(line, err=True)))
    click.echo(scale_tables(rows))


if __name__ == "__main__":
    main()
