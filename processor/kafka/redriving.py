"""Sending dead letters to the records topic again, each once.

Which letters were sent again stands in a ledger (``kafka/ledger.py``), written in the transaction
of the records: whatever kills a run, and however many of them there are, the next one finds in it
exactly what is in the records topic. Letters that a run passed over stay for a later one.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from processor.core.errors import ConfigError, RecordError
from processor.kafka.ledger import Ledger, Outgoing, OutgoingTooLargeError
from processor.kafka.letters import checked_redriven, ledger_name, read_letters, read_redriven
from processor.protocol.letters import MAX_REPLAYS, Choice, Letter
from processor.protocol.redriven import Redriven, decode_redriven
from processor.settings import Settings

Commit = Callable[[Sequence[Outgoing], Mapping[bytes, bytes | None]], Awaitable[None]]

#: What one transaction takes: a killed run does so much again, having shown nothing of it.
_BATCH_LETTERS: Final = 500
_BATCH_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """What to send again, and as what.

    Attributes:
        choice: Which letters.
        session_of: Gives a letter its session; raises ``RecordError`` if it has none.
        partition_of: Gives a session's key its partition; ``None`` does as Java's clients.
        is_topic_new: The dead-letter topic was made anew: what was sent again was not of it.
    """

    choice: Choice
    session_of: Callable[[Letter], str]
    partition_of: Callable[[bytes], int] | None = None
    is_topic_new: bool = False


@dataclass(slots=True)
class Summary:
    """What became of the letters that were meant.

    Attributes:
        sent_count: Are records again.
        sessions: Of which sessions.
        before_count: Were sent again by an earlier run.
        left_count: Have no session, or came back too often; ``left_because`` is the first reason.
    """

    sent_count: int = 0
    sessions: set[str] = field(default_factory=set)
    before_count: int = 0
    left_count: int = 0
    left_because: str | None = None

    def leave(self, why: str) -> None:
        """Count a letter that can't be sent again."""
        self.left_count += 1
        self.left_because = self.left_because or why


async def send_again(settings: Settings, plan: Plan, advance: Callable[[int], None]) -> Summary:
    """Send letters again, in transactions with the memory of which; see the module.

    Args:
        settings: Name the topics.
        plan: Which letters, and as what.
        advance: Told how many letters were looked at.

    Raises:
        ConfigError: A topic is missing, or takes no message of a letter's size.
        FencedError: Another run has begun; all that this one committed counts.
        StateError: The ledger's entries can't be read, or are of another topic of this name.
        UnreachableError: The broker does not answer; the next run finds what was sent.
    """
    ledger = Ledger(settings, ledger_name(settings), settings.records_topic)
    try:
        entries = await ledger.open()
        gone: dict[bytes, bytes | None] = dict.fromkeys(entries) if plan.is_topic_new else {}
        redriven = {} if plan.is_topic_new else await checked_redriven(settings, entries)
        run = Redriver(settings.records_topic, plan, ledger.commit, redriven, gone)
        return await _run(settings, run, advance)
    finally:
        await ledger.close()


async def would_send(settings: Settings, plan: Plan, advance: Callable[[int], None]) -> Summary:
    """Return what ``send_again`` would do now, and change nothing."""

    async def write_nothing(*_: object) -> None:
        pass

    redriven = {} if plan.is_topic_new else await read_redriven(settings)
    run = Redriver(settings.records_topic, plan, write_nothing, redriven)
    return await _run(settings, run, advance)


class Redriver:
    """Takes letters in the order of their partitions and commits them as records.

    Args:
        topic: The records topic.
        plan: Which letters, and as what.
        commit: Writes messages and the ledger's entries in one transaction.
        redriven: By partition, the letters that were sent before.
        entries: To be written with the first transaction.
    """

    def __init__(
        self,
        topic: str,
        plan: Plan,
        commit: Commit,
        redriven: Mapping[int, Redriven],
        entries: Mapping[bytes, bytes | None] | None = None,
    ) -> None:
        self._topic = topic
        self._plan = plan
        self._commit = commit
        self._redriven = dict(redriven)
        self._entries = dict(entries or {})
        self._batch: list[tuple[Letter, Outgoing]] = []
        self._batch_bytes = 0
        self._next: tuple[int, int] = (-1, 0)
        self.summary = Summary()

    @property
    def is_full(self) -> bool:
        """Whether as many letters are taken as the plan allows."""
        most = self._plan.choice.most
        return most is not None and self.summary.sent_count >= most

    async def take(self, letter: Letter) -> None:
        """Take the next letter of its partition; commit what is taken when that is enough."""
        offset = letter.record.offset
        partition, next_offset = self._next
        begin = next_offset if partition == letter.partition else offset
        self._next = letter.partition, offset + 1
        if not self._plan.choice.takes(letter):
            return
        if letter in self._redriven.get(letter.partition, ()):
            self.summary.before_count += 1
        elif letter.replay_count >= MAX_REPLAYS:
            self.summary.leave(f"{letter}: was sent again {letter.replay_count} times already")
        else:
            self._add(letter, begin)
        if len(self._batch) >= _BATCH_LETTERS or self._batch_bytes >= _BATCH_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Commit what is taken."""
        for number in {letter.partition for letter, _ in self._batch}:
            self._entries[b"%d" % number] = self._redriven[number].encode()
        if not self._entries:
            return
        try:
            await self._commit([message for _, message in self._batch], self._entries)
        except OutgoingTooLargeError as error:
            refused = next(letter for letter, it in self._batch if it is error.message)
            message = f"{refused}: {error}, and run it again: what it has sent it knows"
            raise ConfigError(message) from error
        self._batch, self._batch_bytes, self._entries = [], 0, {}

    def _add(self, letter: Letter, begin: int) -> None:
        try:
            session = self._plan.session_of(letter)
        except RecordError as error:
            self.summary.leave(str(error))
            return
        key, value = session.encode(), letter.record.value
        partition = self._plan.partition_of(key) if self._plan.partition_of else None
        message = Outgoing(self._topic, key, value, letter.record_headers(), partition)
        self._batch.append((letter, message))
        self._batch_bytes += len(value or b"")
        self._redriven.setdefault(letter.partition, decode_redriven(None, "")).add(letter, begin)
        self.summary.sent_count += 1
        self.summary.sessions.add(session)


async def _run(settings: Settings, run: Redriver, advance: Callable[[int], None]) -> Summary:
    async with aclosing(read_letters(settings)) as batches:
        async for letters in batches:
            for letter in letters:
                if run.is_full:
                    break
                await run.take(letter)
            advance(len(letters))
            if run.is_full:
                break
    await run.flush()
    return run.summary
