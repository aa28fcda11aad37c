"""What is remembered of each stream of a telemetry partition, to the changelog and back.

A stream is the messages of one key; those without a key are one together. Of each there is what
its format remembers, and what the router itself does: the format, and the session it was last in.
Every item has an entry of its own, so that a change costs what it changes.
"""

from collections.abc import Iterator, Mapping, MutableMapping
from enum import IntEnum
from typing import Final

import msgspec

from processor.core.errors import ChangelogError
from processor.protocol.changelog import PARTITION_KEY

_VERSION: Final = b"\x01"
#: Stream (``None`` for messages without a key), whose item it is, its name.
_ItemKey = tuple[bytes | None, int, str]
Changes = dict[bytes, bytes | None]


class _Owner(IntEnum):
    ROUTER = 0
    FORMAT = 1


class Items(MutableMapping[str, str]):
    """Texts under names, each durable with the next transaction after it is set."""

    def __init__(self, stream: bytes | None, owner: _Owner, changes: Changes) -> None:
        self._stream = stream
        self._owner = owner
        self._changes = changes
        self._items: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        return self._items[name]

    def __setitem__(self, name: str, value: str) -> None:
        if self._items.get(name) != value:
            self._items[name] = value
            self._changes[self._key(name)] = _VERSION + value.encode()

    def __delitem__(self, name: str) -> None:
        del self._items[name]
        self._changes[self._key(name)] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def restore(self, name: str, value: str) -> None:
        """Set what is durable already."""
        self._items[name] = value

    def _key(self, name: str) -> bytes:
        return msgspec.msgpack.encode((self._stream, int(self._owner), name))


class Stream:
    """What is remembered of one stream.

    Attributes:
        memory: What its format remembers.
        about: What the router does.
    """

    def __init__(self, name: bytes | None, changes: Changes) -> None:
        self.memory = Items(name, _Owner.FORMAT, changes)
        self.about = Items(name, _Owner.ROUTER, changes)


class Streams:
    """The streams of one partition.

    Args:
        entries: The changelog's latest entries by key.
        where: Topic and partition, for the error.
        remedy: What to do about a changelog that can't be read.

    Raises:
        ChangelogError: An entry can't be read.
    """

    def __init__(self, entries: Mapping[bytes, bytes], where: str, remedy: str) -> None:
        self._streams: dict[bytes | None, Stream] = {}
        self._changes: Changes = {}
        for key, value in entries.items():
            if key == PARTITION_KEY:
                continue
            try:
                self._restore(key, value)
            except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
                message = f"{where}, entry {key!r}: can't be read ({error}); {remedy}"
                raise ChangelogError(message) from error

    def of(self, name: bytes | None) -> Stream:
        """Return what is remembered of a stream; nothing, of a new one."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream(name, self._changes)
        return stream

    def forget(self, name: bytes | None) -> None:
        """Remember nothing of a stream any more."""
        stream = self._streams.pop(name, None)
        if stream is not None:
            stream.memory.clear()
            stream.about.clear()

    def take_changes(self) -> Changes:
        """Return the entries that have changed since they were last taken."""
        changes = dict(self._changes)
        self._changes.clear()
        return changes

    @property
    def has_changes(self) -> bool:
        """Whether any entry has."""
        return bool(self._changes)

    def _restore(self, key: bytes, value: bytes) -> None:
        name, owner, item = msgspec.msgpack.decode(key, type=_ItemKey)
        if value[:1] != _VERSION:
            message = f"version {value[:1].hex() or 'none'}, this reads {_VERSION.hex()}"
            raise ValueError(message)
        stream = self.of(name)
        items = stream.memory if _Owner(owner) is _Owner.FORMAT else stream.about
        items.restore(item, value[1:].decode())
