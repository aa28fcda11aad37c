"""One partition's chunks against its records: every promise, in bounded memory.

Theory of operation. Chunks are taken in order. Before each, the log is read as far as its last
record and no farther than the client's next batch, so all that is in memory is what the worker
had in memory too: the records that are in no chunk yet, one queue for each session, and where
each chain stands. A chunk must take its records off the front of its session's queue. That is
compared in one pass; only where it differs is each record looked at by itself.

An end of session waits in the queue like a record and is taken by a final chunk. The log may not
be read as far as that end when the chunk comes: the session's next message must then be it.

What is left in the queues is open, unless something behind it is known to be processed: the
worker's transactions are in order, so whatever stands before a chunk's last record is processed,
and whatever is below the group's offset.
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from typing import Final, TypeAlias

from processor.core.errors import StateError
from processor.proof.dead_letters import DeadLetterProof, is_session
from processor.proof.message import WHOLE, Message, Starts, Topics
from processor.proof.recompute import Recomputation
from processor.proof.repeats import Repeats
from processor.proof.report import Fault, FaultKind, Report
from processor.proof.rules import Logged
from processor.proof.seen import Scope, Seen
from processor.proof.session import SessionProof

Batches: TypeAlias = AsyncIterator[Sequence[Message]]
# Logged(...) goes through a Python function that namedtuple makes; this does not.
_new_logged: Final = partial(tuple.__new__, Logged)
_SHOWN: Final = 3
_KEY_BYTES: Final = 8


class PartitionProof:
    """Judges one partition, fed with its three logs.

    Args:
        topics: Names of the topics.
        partition: Its number.
        report: Where faults and numbers go.
        starts: Where each of its logs starts.
        processed: Offset of the log below which all is known to be processed.

    Attributes:
        position: Offset of the log that comes next.
        letters: The part about records without a session.
    """

    def __init__(
        self,
        topics: Topics,
        partition: int,
        report: Report,
        starts: Starts = WHOLE,
        processed: int = 0,
    ) -> None:
        self._scope = Scope(topics, partition, starts, report, processed)
        self._sessions: dict[bytes, SessionProof] = {}
        self._log_time_ms = 0
        self._is_past_chunks = False
        self._recomputation: Recomputation | None = None
        self._only: bytes | None = None
        self._repeats = Repeats(starts.records)
        self.position = starts.records
        self.letters = DeadLetterProof(topics, partition, starts, report)

    def recompute(self) -> None:
        """Compute every chunk again too, with the worker's own core; before anything is taken."""
        self._recomputation = Recomputation(self._scope)

    @property
    def keys(self) -> Iterable[bytes]:
        """The sessions found."""
        return self._sessions.keys()

    def take_records(self, messages: Sequence[Message]) -> None:
        """Take the log's next messages, at least one."""
        sessions, report = self._sessions, self._scope.report
        log_time_ms, only, recomputation = self._log_time_ms, self._only, self._recomputation
        new_logged = _new_logged
        # Bound once: what is done for each message is most of what a proof costs.
        is_past_chunks = self._is_past_chunks
        end_count = sessionless_count = other_count = 0
        repeats = self._repeats.take(messages, self._scope.window)
        for message in messages:
            timestamp_ms = message.timestamp
            log_time_ms = max(log_time_ms, timestamp_ms)
            key = message.key or b""
            if only is not None and key != only:
                other_count += 1
                continue
            session = sessions.get(key) or self._session(key)
            if session is None:
                sessionless_count += 1
                self.letters.expect(message)
                continue
            offset, value = message.offset, message.value
            repeated = repeats.get(offset) if repeats else None
            row = (offset, timestamp_ms, log_time_ms, value, message.headers, repeated)
            logged = new_logged(row)
            if value is None:
                end_count += 1
                take = session.pass_end if is_past_chunks else session.take_end
            else:
                take = session.pass_record if is_past_chunks else session.take_record
            take(logged)
            if recomputation is not None:
                recomputation.take(key, logged)
        self._log_time_ms = log_time_ms
        count = len(messages) - other_count
        report.message_count += count
        report.end_count += end_count
        report.sessionless_count += sessionless_count
        report.record_count += count - end_count - sessionless_count
        self._scope.note_time(messages[0].timestamp_type)
        self.position = messages[-1].offset + 1

    def keep_to(self, session: str) -> None:
        """Judge one session alone; before anything is taken."""
        self._only = session.encode()

    def read_chunk(self, message: Message) -> Seen | None:
        """Read a message of the chunks topic; ``None`` if nothing more is to be said of it."""
        scope = self._scope
        if self._only is not None and message.key != self._only:
            return None
        scope.report.chunk_count += 1
        try:
            seen = Seen(message)
        except StateError as error:
            where = (scope.topics.chunks, scope.partition, message.offset)
            scope.report.blame(Fault(FaultKind.MALFORMED, str(error), *where))
            return None
        source = seen.chunk.source
        if (source.topic, source.partition) != (scope.topics.records, scope.partition):
            what = f"its records are from {source.topic}[{source.partition}]"
            scope.blame_chunk(FaultKind.PARTITION, seen, what)
            return None
        # Before the log is read as far as this chunk.
        scope.window = max(scope.window, seen.chunk.policy.deduplicate_records)
        scope.note_forgetting(seen)
        return seen

    def take_chunk(self, seen: Seen) -> None:
        """Judge a chunk, the log being read as far as its last record."""
        chunk, scope = seen.chunk, self._scope
        key = chunk.session.encode()
        scope.follow(seen)
        headers = dict(seen.message.headers)
        expected = {
            "content-type": b"application/json",
            "schema-version": b"%d" % chunk.schema_version,
            "ce_id": f"{chunk.session}/{chunk.t}".encode(),
        }
        if seen.message.key != key or expected.items() - headers.items():
            what = f"key {seen.message.key!r} and headers {headers} are not this chunk's"
            scope.blame_chunk(FaultKind.MALFORMED, seen, what)
        session = self._sessions.get(key) or self._session(key)
        if session is None:
            scope.blame_chunk(FaultKind.MALFORMED, seen, "its session is empty")
            return
        session.take_chunk(seen)
        if self._recomputation is not None:
            self._recomputation.take_chunk(seen)

    def end_chunks(self) -> None:
        """Settle the queues: there are no more chunks."""
        self._is_past_chunks = True
        for session in self._sessions.values():
            session.close()
        if self._recomputation is not None:
            self._recomputation.end_chunks()

    def finish(self) -> None:
        """Settle the rest: all three logs are read."""
        report, scope = self._scope.report, self._scope
        self.letters.finish(self.position, scope.processed)
        report.session_count += len(self._sessions)
        report.open_count += sum(it.open_count for it in self._sessions.values())
        for session in self._sessions.values():
            session.finish()
        if self._recomputation is not None:
            self._recomputation.finish()

    def _session(self, key: bytes) -> SessionProof | None:
        if not is_session(key):
            return None
        session = self._sessions[key] = SessionProof(key.decode(), self._scope)
        return session


async def prove_partition(
    proof: PartitionProof, records: Batches, chunks: Batches, letters: Batches
) -> None:
    """Feed a partition's proof with its three logs, each up to its end.

    The ends are those of the moment in which each is first asked: chunks before records, so
    that a running worker does no harm.

    Args:
        proof: The proof.
        records: The records topic's messages, in lists.
        chunks: Those of the chunks topic.
        letters: Those of the dead-letter topic.
    """
    async for messages in chunks:
        for message in messages:
            seen = proof.read_chunk(message)
            if seen is None:
                continue
            while proof.position <= seen.last_offset and await _advance(proof, records, letters):
                pass
            proof.take_chunk(seen)
    proof.end_chunks()
    while await _advance(proof, records, letters):
        pass
    async for messages in letters:
        proof.letters.take(messages)
    proof.finish()


async def _advance(proof: PartitionProof, records: Batches, letters: Batches) -> bool:
    """Take one batch of the log, and the dead letters that it asks for; return if there was one."""
    messages = await anext(records, None)
    if messages is None:
        return False
    proof.take_records(messages)
    while proof.letters.is_waiting:
        come = await anext(letters, None)
        if come is None:
            break
        proof.letters.take(come)
    return True


class SplitSessions:
    """Finds keys that are on several partitions: each is a session of its own there.

    A key is remembered by 8 bytes of a digest, by which two of a million keys look like one in one
    run of 37 million. So proofs need not stay in memory, and what is known may be kept in a file.
    """

    def __init__(self) -> None:
        self._known: set[bytes] = set()
        self._names: list[str] = []
        self._count = 0

    def take(self, keys: Iterable[bytes]) -> bytes:
        """Take the keys of one partition, and return their digests, one after the other."""
        digests = set()
        for key in keys:
            digest = blake2b(key, digest_size=_KEY_BYTES).digest()
            digests.add(digest)
            if digest in self._known:
                self._count += 1
                if len(self._names) < _SHOWN:
                    self._names.append(ascii(key.decode()))
        self._known |= digests
        return b"".join(digests)

    def take_known(self, digests: bytes) -> None:
        """Take what ``take`` returned, for a partition that comes before the others."""
        size = _KEY_BYTES
        earlier = {digests[at : at + size] for at in range(0, len(digests), size)}
        self._count += len(earlier & self._known)
        self._known |= earlier

    def warn(self, report: Report) -> None:
        """Warn of what was found."""
        if self._count:
            more = self._count - len(self._names)
            names = ", ".join(self._names) or "their names were not kept"
            report.warnings.append(
                f"{self._count:,} keys are on several partitions, each a session of its own there "
                f"(producers with different partitioners?): {names}"
                + (f" and {more:,} more" if more and self._names else "")
            )
