"""``processor produce --follow``: growing files into the records topic, each line once.

The position of each file is an entry of a ledger, in the transaction of its records. Whatever goes
wrong with that, all that is known of the files is forgotten and made anew of the entries: a fault
of the broker is handled by what a restart does.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from processor.core.errors import (
    OwnershipError,
    ProcessorError,
    RecordError,
    UnreachableError,
)
from processor.feeding.choice import Choice
from processor.feeding.sending import NotSentError
from processor.kafka.ledger import Outgoing, OutgoingTooLargeError
from processor.sources.follow import Follower
from processor.sources.followed_file import FollowedFile, Lines

_TURN_BYTES: Final = 256 * 1024
_BATCH_BYTES: Final = 1 << 20
_BATCH_RECORDS: Final = 10_000
_BATCH_S: Final = 0.2
_LOOK_EVERY_S: Final = 0.2
#: Looking may take this share of the time at most, however many files there are.
_LOOK_SHARE: Final = 0.1
_REOPEN_AFTER_S: Final = 1.0
_log = logging.getLogger(__name__)


class Book(Protocol):
    """What is asked of a ledger."""

    async def open(self) -> dict[bytes, bytes]:
        """Become the only sender of a name and return its entries."""
        ...

    async def commit(
        self, messages: Sequence[Outgoing], entries: Mapping[bytes, bytes | None]
    ) -> None:
        """Write both in one transaction."""
        ...

    async def close(self) -> None:
        """Let go of the producer."""
        ...


@dataclass(slots=True)
class _Batch:
    """What one transaction will write, and the line that each message is of."""

    messages: list[Outgoing] = field(default_factory=list)
    places: list[tuple[str, int]] = field(default_factory=list)
    files: set[FollowedFile] = field(default_factory=set)
    byte_count: int = 0

    def place_of(self, message: Outgoing) -> tuple[str, int]:
        """Return path and line number of a message."""
        return next(
            place for each, place in zip(self.messages, self.places, strict=True) if each is message
        )


class _StopError(Exception):
    """A line can't be sent, nor may any after it."""

    def __init__(self, place: tuple[str, int], why: ProcessorError) -> None:
        super().__init__(place, why)
        self.place = place
        self.why = why


class Following:
    """Sends what is appended to files, until it is cancelled.

    Args:
        book: Where to, and where the positions are kept.
        topic: Name of the records topic.
        roots: Folders and files.
        choice: How lines become records.
    """

    def __init__(self, book: Book, topic: str, roots: Sequence[str], choice: Choice) -> None:
        self._book = book
        self._topic = topic
        self._roots = roots
        self._choice = choice
        self._stops: dict[str, int] = {}
        self._why: NotSentError | None = None
        self.record_count = 0

    async def run(self) -> None:
        """Send for ever; cancelled, finish the transaction at hand.

        Raises:
            NotSentError: A line can't be sent; all before it was.
            FencedError: Another follower has this name.
            UnreachableError: There is no broker; one that goes away later is waited for.
        """
        try:
            entries = await self._book.open()
            while True:
                try:
                    await self._send(Follower(self._roots, entries, self._stops))
                except _StopError as error:
                    self._note(error)
                except (OwnershipError, UnreachableError) as error:
                    _log.warning("sending failed, going on from the positions: %s", error)
                    await asyncio.sleep(_REOPEN_AFTER_S)
                entries = await self._reopen()
        finally:
            await self._book.close()

    async def _reopen(self) -> dict[bytes, bytes]:
        while True:
            try:
                return await self._book.open()
            except UnreachableError as error:
                _log.warning("waiting for the broker: %s", error)
                await asyncio.sleep(_REOPEN_AFTER_S)

    async def _send(self, follower: Follower) -> None:
        clock = asyncio.get_running_loop().time
        look_at = clock()
        file_count = -1
        while True:
            if (began_at := clock()) >= look_at:
                count = follower.look()
                look_at = clock() + max(_LOOK_EVERY_S, (clock() - began_at) / _LOOK_SHARE)
                if count != file_count:
                    file_count = count
                    _log.info("following", extra={"files": count, "topic": self._topic})
            batch = self._gather(follower, clock() + _BATCH_S)
            if batch.files:
                await self._commit(batch)
            elif self._why is not None:
                raise self._why
            else:
                await asyncio.sleep(max(0.0, look_at - clock()))

    def _gather(self, follower: Follower, until: float) -> _Batch:
        clock = asyncio.get_running_loop().time
        batch = _Batch(files=follower.take_moved())
        while (
            batch.byte_count < _BATCH_BYTES
            and len(batch.messages) < _BATCH_RECORDS
            and clock() < until
            and (taken := follower.take(_TURN_BYTES)) is not None
        ):
            self._add(batch, *taken)
        return batch

    def _add(self, batch: _Batch, file: FollowedFile, lines: Lines) -> None:
        if file.format_name is None:
            file.format_name = self._choice.name_for(lines.values)
        reader = self._choice.reader(file.format_name, file.home, file.memory)
        batch.files.add(file)
        for number, line in enumerate(lines.values, lines.first_number):
            try:
                for session, value, headers in self._choice.read(reader, line):
                    batch.messages.append(Outgoing(self._topic, session.encode(), value, headers))
                    batch.places.append((file.path, number))
            except RecordError as error:
                raise _StopError((file.path, number), error) from error
            batch.byte_count += len(line)

    async def _commit(self, batch: _Batch) -> None:
        committing = asyncio.ensure_future(self._write(batch))
        try:
            await asyncio.shield(committing)
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessorError):  # the next start sees whether it landed
                await committing
            raise
        except OutgoingTooLargeError as error:
            raise _StopError(batch.place_of(error.message), error) from error

    async def _write(self, batch: _Batch) -> None:
        entries = {it.key: it.entry() for it in batch.files}
        await self._book.commit(batch.messages, entries)
        self.record_count += len(batch.messages)

    def _note(self, error: _StopError) -> None:
        """Have all before the line sent, by another start that does not take it."""
        path, number = error.place
        self._stops[path] = number
        self._why = NotSentError(
            f"{path}:{number + 1}: {error.why}; all before it was sent, nothing after it. Start"
            " again once that is done: it goes on from this line"
        )
