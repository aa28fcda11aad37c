"""What must be true at the end, and after every commit; shares no code with the processor.

The reference goes through the log once for each session and cuts it by the rules anew. Timestamps
come from the log and clocks are off by less than the grace, so a closing by the clock cuts where
the log would have cut: the reference needs not be told of them.
"""

from hashlib import sha256
from typing import NamedTuple

import msgspec

from tests.simulation.broker import CHANGELOG, CHUNKS, DEAD_LETTERS

MAX_TOKENS, MAX_RECORDS, IDLE_MS, AGE_MS, HUGE = 6, 4, 10_000, 24_000, 4000


class ViolationError(Exception):
    """A promise is broken."""


class ReadChunk(NamedTuple):
    """A chunk as its bytes tell it."""

    session: str
    t: int
    flush: str
    final: bool
    clock: bool
    over_budget: bool
    offsets: tuple
    carried: tuple
    previous: str
    digest: str


class Cut(NamedTuple):
    """A chunk as it should be: its index, why it ends, whether for good, and its records."""

    t: int
    flush: str
    final: bool
    offsets: tuple


def read_chunk(line):
    chunk = msgspec.json.decode(line)
    records = chunk["records"]
    return ReadChunk(
        chunk["session"],
        chunk["t"],
        chunk["flush"],
        chunk["final"],
        chunk.get("clock", False),
        chunk["over_budget"],
        tuple(it["offset"] for it in records),
        tuple(next(name for name in _CARRIED if name in it) for it in records),
        chunk["previous_digest"],
        chunk["digest"],
    )


_CARRIED = ("value", "text", "base64", "omitted")


def read_entry(key, value):
    """Return a changelog entry in plain terms, as a dictionary; ``None`` if it was deleted."""
    if value is None:
        return None
    decoded = msgspec.msgpack.decode(value[1:])
    if key == b"":
        return {name: decoded[name] for name in ("low", "seen", "counts")}
    t, _, next_offset, ended, *open_records = decoded
    offsets = [it[0] for it in open_records[0]] if open_records else []
    return {"t": t, "next": next_offset, "ended": ended, "open": offsets}


def entries_of(partition):
    """Return the latest committed entries by key."""
    latest = dict(partition.logs[CHANGELOG].committed())
    return {key: read_entry(key, value) for key, value in latest.items() if value is not None}


def mark_of(partition):
    """Return where the next owner's replay starts."""
    entry = entries_of(partition).get(b"")
    return 0 if entry is None else entry["low"]


def needed_from(partition):
    """Return where the log must begin at the latest: the ids before the mark are needed too."""
    return mark_of(partition) - partition.remembered


def chunks_of(partition):
    return [read_chunk(message.value) for message in partition.logs[CHUNKS].committed()]


def is_dead(key):
    try:
        return not key or not key.decode()
    except UnicodeDecodeError:
        return True


def check_mark(partition):
    """Check that a replay from the mark misses nothing that is not durable."""
    entries, low = entries_of(partition), mark_of(partition)
    durable = {offset for chunk in chunks_of(partition) for offset in chunk.offsets}
    durable |= {offset for entry in entries.values() for offset in entry.get("open", ())}
    records = partition.records.committed()
    repeated = repeated_of(records, partition.remembered)
    for record in records:
        if record.offset >= low:
            return
        if record.value is None or is_dead(record.key) or record.offset in repeated:
            continue
        if record.offset not in durable:
            message = f"[{partition.number}] a replay from {low} misses record {record.offset}"
            raise ViolationError(message)


def check_partition(partition):
    """Check all promises at the end of a history.

    Raises:
        ViolationError: One is broken.
    """
    for topic, log in partition.logs.items():
        if log.stable_end != log.high_watermark:
            _fail(partition, f"a transaction hangs in {topic}")
    records = partition.records.committed()
    chunks = {}
    for chunk in chunks_of(partition):
        chunks.setdefault(chunk.session, []).append(chunk)
    repeated = repeated_of(records, partition.remembered)
    wanted = reference(records, repeated, partition.forget_ms)
    for session in sorted(set(chunks) | set(wanted)):
        problem = _problem(chunks.get(session, []), wanted.get(session, []), records, session)
        if problem:
            _fail(partition, f"{problem} in session {session}")
    _check_dead_letters(partition, records)
    _check_counts(partition, records)


def _problem(chunks, wanted, records, session):
    """Return what is wrong with the chunks of one session, ``None`` if nothing is."""
    if [chunk.t for chunk in chunks] != [cut.t for cut in wanted]:
        return _records_problem(chunks, wanted) or "t not contiguous"
    if [Cut(it.t, it.flush, it.final, it.offsets) for it in chunks] != wanted:
        return _records_problem(chunks, wanted) or "boundaries not reproducible"
    values = {record.offset: record.value for record in records}
    first = previous = sha256(session.encode()).hexdigest()
    for chunk in chunks:
        previous = first if chunk.t == 1 else previous
        held = [values[offset] for offset in chunk.offsets]
        digests = (previous, _digest(previous, held))
        if (chunk.previous, chunk.digest) != digests:
            return "digests do not chain"
        _, previous = digests
        if chunk.carried != tuple(map(_carrier, held)):
            return "a record is carried wrongly"
        if not _is_marked_rightly(chunk):
            return "a chunk is marked wrongly"
    return None


def _records_problem(chunks, wanted):
    offsets = [offset for chunk in chunks for offset in chunk.offsets]
    expected = [offset for cut in wanted for offset in cut.offsets]
    if offsets == expected:
        return None
    if len(offsets) > len(set(offsets)):
        return "records repeated"
    return "records lost" if set(offsets) < set(expected) else "records wrong"


def _is_marked_rightly(chunk):
    by_the_clock = not chunk.clock or chunk.flush in ("idle", "age")
    return by_the_clock and chunk.over_budget == (chunk.flush == "oversize")


def _digest(previous, values):
    parts = b"".join(len(it).to_bytes(8, "big") + it for it in values)
    return sha256(bytes.fromhex(previous) + parts).hexdigest()


def _carrier(value):
    if len(value) > HUGE:
        return "omitted"
    if value.endswith(b"\xff"):
        return "base64"
    return "value" if value.startswith(b'"') or value.isdigit() else "text"


def _check_dead_letters(partition, records):
    letters = [
        (int(dict(it.headers)["__connect.errors.offset"]), it.key, it.value)
        for it in partition.logs[DEAD_LETTERS].committed()
    ]
    if letters != [(it.offset, it.key, it.value) for it in records if is_dead(it.key)]:
        _fail(partition, "dead letters not exactly once")


def _check_counts(partition, records):
    entry = entries_of(partition)[b""]
    with_session = [it for it in records if not is_dead(it.key)]
    lines = sum(it.value is not None for it in with_session)
    ends = len(with_session) - lines
    repeated = len(repeated_of(records, partition.remembered))
    wanted = [lines, lines - repeated, len(records) - len(with_session), ends, repeated]
    if entry["counts"] != wanted:
        _fail(partition, f"counts are wrong, {entry['counts']} for {wanted}")


def _fail(partition, what):
    message = f"[{partition.number}] {what}"
    raise ViolationError(message)


def repeated_of(records, remembered):
    """Return the offsets of records whose id stood so many offsets before, in their session."""
    latest, repeated = {}, set()
    for record in records if remembered else ():
        name = dict(record.headers).get("record-id")
        if name and record.value is not None and not is_dead(record.key):
            if record.offset - latest.get((record.key, name), -remembered - 1) <= remembered:
                repeated.add(record.offset)
            latest[record.key, name] = record.offset
    return repeated


def reference(records, repeated, forget_ms=None):
    """Return, for each session, the cuts that the rules make, without what is repeated."""
    sessions, log_time = {}, 0
    for record in records:
        log_time = max(log_time, record.timestamp)
        if not is_dead(record.key) and record.offset not in repeated:
            sessions.setdefault(record.key.decode(), []).append((record, log_time))
    return {session: _Session(forget_ms).cuts_of(timed) for session, timed in sessions.items()}


class _Session:
    """One session, cut by the rules."""

    def __init__(self, forget_ms):
        self.cuts, self.held, self.ended, self.t = [], [], False, 0
        self.ended_at_ms, self.forget_ms = 0, forget_ms

    def cuts_of(self, timed):
        for record, at_ms in timed:
            self._close_late(at_ms)
            if self.ended and self.forget_ms and at_ms - self.ended_at_ms > self.forget_ms:
                self.ended, self.t = False, 0
            if record.value is None:
                self._end(at_ms)
            else:
                self._take(record, at_ms)
        self._close_late(None)
        return self.cuts

    def _take(self, record, at_ms):
        held, self.ended = self.held, False
        tokens, is_huge = len(record.value.split()), len(record.value) > HUGE
        if held and is_huge:
            self._close("bytes")
        elif len(held) == MAX_RECORDS:
            self._close("count")
        elif held and sum(it[1] for it in held) + tokens > MAX_TOKENS:
            self._close("tokens")
        held.append((record.offset, tokens, at_ms))
        if tokens > MAX_TOKENS:
            self._close("oversize")
        elif is_huge:
            self._close("bytes")

    def _end(self, at_ms):
        if self.held or not self.ended:
            self._close("end")
            self.ended_at_ms = at_ms
        self.ended = True

    def _close_late(self, at_ms):
        """Close what is late at an instant; ``None`` is long after the last record."""
        if not self.held:
            return
        idle, age = self.held[-1][2] + IDLE_MS, self.held[0][2] + AGE_MS
        if at_ms is None or at_ms > min(idle, age):
            self._close("idle" if idle <= age else "age")

    def _close(self, flush):
        self.t += 1
        self.cuts.append(Cut(self.t, flush, flush == "end", tuple(it[0] for it in self.held)))
        self.held.clear()
