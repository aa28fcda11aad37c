"""The histories of all sessions of a stream, in its memory; those that were used last."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

from processor.core.errors import StateError
from processor.formats.format import Memory
from processor.formats.history import Branches

#: Sessions remembered; a session that comes back after so many others is told anew.
MAX_SESSIONS: Final = 1_000
_PREFIX: Final = "otel."
#: Characters of it that an error shows.
_SHOWN: Final = 80
_KEY_CHARS: Final = 32
_ID_CHARS: Final = 16


class Histories:
    """What is remembered of each session, under one name each: a turn, then its histories.

    Raises:
        StateError: The memory is damaged; ``knows`` and the others may find so too.

    Changes wait for ``keep``: an export that turns out to be unreadable must leave no trace.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._count = 0
        self._turn = 0
        for name in memory:
            if name.startswith(_PREFIX):
                self._count += 1
                self._turn = max(self._turn, _turn_of(memory[name]))
        self._changed: dict[str, Branches] = {}

    def knows(self, session: str, digests: Sequence[str]) -> bool:
        """Tell whether the calls that a session told of last have all of these messages."""
        return self._branches(session).knows(digests)

    def new_ids(self, session: str, digests: Sequence[str]) -> dict[int, str]:
        """Take in a call's list of messages; return the id of each that is new, by its index."""
        self._changed[_name(session)], new = self._branches(session).after(session, digests)
        return new

    def new_instructions_id(self, session: str, digest: str, before: str) -> str | None:
        """Take in a call's instructions; return their id, None if they are those of the last call.

        Args:
            session: Whose they are.
            digest: What they are known by.
            before: Id of the message that they come before.
        """
        branches = self._branches(session)
        if branches.instructions == digest:
            return None
        self._changed[_name(session)] = replace(branches, instructions=digest)
        return sha256(f"{session} {digest} {before}".encode()).hexdigest()[:_ID_CHARS]

    def keep(self) -> None:
        """Make the changes since the last ``keep`` or ``drop`` part of the memory."""
        for name, branches in self._changed.items():
            self._count += name not in self._memory
            self._turn += 1
            self._memory[name] = f"{self._turn} {branches.to_text()}"
        self._changed.clear()
        if self._count > MAX_SESSIONS:
            names = [it for it in self._memory if it.startswith(_PREFIX)]
            names.sort(key=lambda it: _turn_of(self._memory[it]))
            for name in names[: self._count - MAX_SESSIONS]:
                del self._memory[name]
            self._count = MAX_SESSIONS

    def drop(self) -> None:
        """Forget the changes since the last ``keep``."""
        self._changed.clear()

    def _branches(self, session: str) -> Branches:
        name = _name(session)
        if name in self._changed:
            return self._changed[name]
        text = self._memory.get(name)
        if text is None:
            return Branches()
        try:
            return Branches.from_text(text.partition(" ")[2])
        except ValueError as error:
            raise _damaged(text) from error


def _name(session: str) -> str:
    return _PREFIX + sha256(session.encode()).hexdigest()[:_KEY_CHARS]


def _turn_of(text: str) -> int:
    try:
        return int(text.partition(" ")[0])
    except ValueError as error:
        raise _damaged(text) from error


def _damaged(text: str) -> StateError:
    return StateError(
        f"what is remembered of a session is damaged ({text[:_SHOWN]!a}), and with it whatever "
        "keeps it: forget that, and read the stream from its start"
    )
