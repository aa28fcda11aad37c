"""Judges what the worker did, from the topics alone and with no line of the worker's code.

A session is a pair of partition and key. Its chunks, joined, must be its records: byte for byte, in
offset order, each once, cut only between records, with contiguous ``t``, a whole chain of digests,
and a final chunk for each end of session. Only its last records may be in no chunk yet.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from tests.e2e.chunk_reading import ChunkError, SeenChunk, SeenRecord, read_chunk
from tests.e2e.log_reading import Message, read_log
from tests.e2e.verdict import Verdict

QUARTERS: Final = "chars_over_four"
"""The one token counter that the oracle can do itself."""


@dataclass
class _Session:
    """What the log says of one session, and how far its chunks have come."""

    name: str
    partition: int
    verdict: Verdict
    log: dict[int, Message] = field(default_factory=dict)
    ends: Counter[int] = field(default_factory=Counter)
    """Of each end of session, the offset of the last record before it."""
    last_logged: int = -1
    last_end: int = -1
    delivered: set[int] = field(default_factory=set)
    last: int = -1
    t: int = 0
    digest: str = ""
    previous: SeenChunk | None = None
    finals: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.digest = sha256(self.name.encode()).hexdigest()

    def note(self, message: Message) -> None:
        """Take one message of the log."""
        if message.value is not None:
            self.log[message.offset] = message
            self.last_logged = message.offset
            return
        # An end right after an end says nothing new.
        if self.last_end <= self.last_logged or self.last_end == -1:
            self.ends[self.last_logged] += 1
        self.last_end = message.offset

    def take(self, chunk: SeenChunk) -> None:
        """Judge the next chunk of this session."""
        if chunk.t != self.t + 1:
            self.verdict.blame("gaps", f"{chunk} comes after t={self.t}")
        self._judge_cut(chunk)
        self._judge_digest(chunk)
        for record in chunk.records:
            self._judge_record(record, chunk)
        if chunk.final:
            self.finals[self.last] += 1
        self.t = max(self.t, chunk.t)
        self.previous = chunk

    def _judge_cut(self, chunk: SeenChunk) -> None:
        is_above = chunk.token_count > chunk.max_tokens
        if chunk.over_budget != is_above or (is_above and len(chunk.records) > 1):
            what = f"{chunk}: {len(chunk.records)} records, {chunk.token_count} tokens"
            self.verdict.blame("over_budget", f"{what}, over_budget={chunk.over_budget}")
        before = self.previous
        if before is None or before.flush != "tokens" or not chunk.records:
            return
        if before.token_count + chunk.records[0].token_count <= before.flush_tokens:
            self.verdict.blame("boundaries", f"{chunk}'s first record fits into {before}")

    def _judge_digest(self, chunk: SeenChunk) -> None:
        rest = sha256(bytes.fromhex(self.digest))
        for record in chunk.records:
            value = record.value
            if value is None:
                value = self.log[record.offset].value if record.offset in self.log else b""
            rest.update(len(value or b"").to_bytes(8, "big") + (value or b""))
        if (chunk.previous_digest, chunk.digest) != (self.digest, rest.hexdigest()):
            self.verdict.blame("digests", f"{chunk} does not continue the chain")
        if len(chunk.digest) == len(self.digest):
            self.digest = chunk.digest

    def _judge_record(self, record: SeenRecord, chunk: SeenChunk) -> None:
        where = f"records[{self.partition}]@{record.offset} in {chunk}"
        logged = self.log.get(record.offset)
        if logged is None:
            self.verdict.blame("altered", f"{where} is not in the session's log")
            return
        if record.offset in self.delivered:
            self.verdict.blame("repeated", where)
        elif record.offset < self.last:
            self.verdict.blame("reordered", f"{where} comes after offset {self.last}")
        self.delivered.add(record.offset)
        self.last = max(self.last, record.offset)
        if not _is_same(record, logged):
            self.verdict.blame("altered", f"{where} has other bytes or time than in the log")
        counted = _chars_over_four(logged.value)
        if chunk.token_counter == QUARTERS and counted not in {None, record.token_count}:
            self.verdict.blame("tokens", f"{where}: {record.token_count}, not {counted}")

    def finish(self, *, complete: bool, max_tokens: int) -> None:
        """Judge what is in no chunk."""
        rest = [offset for offset in self.log if offset not in self.delivered]
        tail = [offset for offset in rest if offset > self.last]
        if complete:
            tail = [offset for offset in tail if offset > self.last_end]
            open_tokens = sum(_chars_over_four(self.log[offset].value) or 1 for offset in tail)
            if open_tokens > max_tokens:
                tail = []  # more than one chunk may hold: it can't be waiting for more
        self.verdict.open += len(tail)
        missing = sorted(set(rest) - set(tail))
        if missing:
            where = f"{self.name}: records[{self.partition}]@{', '.join(map(str, missing[:5]))}"
            self.verdict.blame("missing", where, count=len(missing))
        due = {at: n for at, n in self.ends.items() if complete or at < self.last}
        unmet = Counter(due) - self.finals
        undue = self.finals - self.ends
        if (unmet + undue).total():
            where = f"{self.name}: after offset {dict(unmet)} none, after {dict(undue)} too many"
            self.verdict.blame("ends", f"{where} final chunks", count=(unmet + undue).total())


def judge_logs(
    records: Iterable[Message],
    chunks: Iterable[Message],
    dead_letters: Iterable[Message],
    *,
    complete: bool = True,
    max_tokens: int = 5_000,
) -> Verdict:
    """Judge chunks and dead letters by the records they come from.

    Args:
        records: All messages of ``records``, those of one partition in offset order.
        chunks: All messages of ``chunks``, likewise.
        dead_letters: All messages of the dead-letter topic.
        complete: The worker has read everything: a session's open rest must fit into one chunk,
            every end needs its final chunk, every record without a session its dead letter.
        max_tokens: What the open rest of a session may hold, in quarters of characters.
    """
    verdict = Verdict()
    sessions: dict[tuple[int, bytes], _Session] = {}
    lost: dict[tuple[int, int], Message] = {}
    for message in records:
        name = _session_name(message.key)
        if not name or message.key is None:
            lost[message.partition, message.offset] = message
            continue
        at = message.partition, message.key
        sessions.setdefault(at, _Session(name, message.partition, verdict)).note(message)
    for message in chunks:
        verdict.chunks += 1
        _judge_chunk(message, sessions, verdict)
    for session in sessions.values():
        session.finish(complete=complete, max_tokens=max_tokens)
    _judge_dead_letters(dead_letters, lost, verdict, complete=complete)
    verdict.sessions = len(sessions)
    verdict.records = sum(len(session.log) for session in sessions.values())
    return verdict


def _judge_chunk(
    message: Message, sessions: dict[tuple[int, bytes], _Session], verdict: Verdict
) -> None:
    where = f"chunks[{message.partition}]@{message.offset}"
    try:
        chunk = read_chunk(message.value or b"")
    except ChunkError as exc:
        verdict.blame("malformed", f"{where}: {exc}")
        return
    if chunk.partition != message.partition:
        verdict.blame("wrong_partition", f"{where}: {chunk} comes from {chunk.partition}")
    key = chunk.session.encode()
    if message.key != key or dict(message.headers).get("ce_id") != str(chunk).encode():
        verdict.blame("malformed", f"{where}: key or ce_id header is not that of {chunk}")
    session = sessions.get((chunk.partition, key))
    if session is None:
        verdict.blame("malformed", f"{where}: no such session in records[{chunk.partition}]")
        return
    session.take(chunk)


def _judge_dead_letters(
    dead_letters: Iterable[Message],
    lost: dict[tuple[int, int], Message],
    verdict: Verdict,
    *,
    complete: bool,
) -> None:
    wanted = dict(lost)
    for letter in dead_letters:
        verdict.dead_letters += 1
        said = dict(letter.headers)
        where = tuple(said.get(f"__connect.errors.{name}", b"") for name in ("partition", "offset"))
        what = f"dead letter @{letter.offset} for records[{where[0]!r}]@{where[1]!r}"
        if not all(number.isdigit() for number in where):
            verdict.blame("dead_letters", f"{what}: no origin")
            continue
        origin = int(where[0]), int(where[1])
        record = wanted.pop(origin, None)
        if record is None:
            why = "comes twice" if origin in lost else "has a session, or is no record"
            verdict.blame("dead_letters", f"{what} {why}")
        elif (letter.key, letter.value) != (record.key, record.value):
            verdict.blame("dead_letters", f"{what} has another key or value")
        elif not set(record.headers) <= set(letter.headers):
            verdict.blame("dead_letters", f"{what} lacks headers of the record")
    if wanted and complete:
        where_to = ", ".join(f"records[{at[0]}]@{at[1]}" for at in list(wanted)[:5])
        verdict.blame("dead_letters", f"none for {where_to}", count=len(wanted))


def _session_name(key: bytes | None) -> str | None:
    try:
        return None if key is None else key.decode()
    except UnicodeDecodeError:
        return None


def _is_same(record: SeenRecord, logged: Message) -> bool:
    value = logged.value or b""
    if record.value is None:
        return (record.size, record.sha256) == (len(value), sha256(value).hexdigest())
    return (record.value, record.timestamp_ms) == (value, logged.timestamp_ms)


def _chars_over_four(value: bytes | None) -> int | None:
    """Return a quarter of the characters, at least 1; ``None`` where there are no characters."""
    try:
        return max(1, (len((value or b"").decode()) + 3) // 4)
    except UnicodeDecodeError:
        return None


async def judge(  # noqa: PLR0913 - three topics on one broker
    bootstrap: str,
    records_topic: str,
    chunks_topic: str,
    dead_letter_topic: str,
    *,
    complete: bool = True,
    max_tokens: int = 5_000,
    patience_s: float = 60.0,
) -> Verdict:
    """Read the three topics, read_committed, and judge them.

    Args:
        bootstrap: The broker's address.
        records_topic: What was produced.
        chunks_topic: What the worker made of it.
        dead_letter_topic: What it set aside.
        complete: As in ``judge_logs``. If not, the topics are read to their last stable offset,
            so that the worker may be at work meanwhile.
        max_tokens: As in ``judge_logs``.
        patience_s: How long a topic may stand still before its end is reached.

    Raises:
        TimeoutError: The end was not reached, mostly because a transaction hangs.
    """
    # The records last: what comes in meanwhile may be in records alone, never in chunks alone.
    chunks = await read_log(bootstrap, chunks_topic, settled=complete, patience_s=patience_s)
    lost = await read_log(bootstrap, dead_letter_topic, settled=complete, patience_s=patience_s)
    records = await read_log(bootstrap, records_topic, settled=complete, patience_s=patience_s)
    return await asyncio.to_thread(
        judge_logs, records, chunks, lost, complete=complete, max_tokens=max_tokens
    )
