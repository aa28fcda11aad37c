"""What every transcript format is and gives; no format.

A format reads one ordered stream: the lines of a file, or the messages of one key. What it has to
remember from one value to the next (a session that only the first line names, a history that it
has seen) it keeps in a mapping that it is given. Whoever reads a stream exactly once makes that
mapping durable together with the position: the format itself knows no storage. After a fault,
make a new format from the mapping as it was.
"""

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from processor.formats.content import Said, said_in
from processor.formats.json_line import JsonLine

Headers = tuple[tuple[str, bytes], ...]
#: What a format remembers of its stream; short texts under short names, so that it can be stored.
Memory = MutableMapping[str, str]


class SessionRecord(NamedTuple):
    """One record to be: which session it belongs to, its bytes, its headers.

    Attributes:
        session: Non-empty, and UTF-8 can be made of it. None for an entry that names no session
            beside others in the same value that do, where ``FormatOptions`` has none either:
            whoever reads sets it aside, as they would a value for which ``read`` raises
            ``NoSessionError``.
        value: For a line of a transcript the line, to the byte.
        headers: ``event-time`` (RFC 3339, as the source wrote it or in UTC) where the source tells
            one; ``record-id``, the same for repeats of one record and for nothing else, where the
            source allows to tell; and whatever ``FormatOptions.header_fields`` asked for.
    """

    session: str | None
    value: bytes
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """What a person chooses about a format.

    Attributes:
        session: Of what names none itself: a file's name without extension, a message's key.
        session_fields: Where a value holds its session, the first that is there: dotted paths
            (``metadata.session_id``), or names of attributes for ``otel``.
        header_fields: Header name, and where a value holds it, likewise.
    """

    session: str | None = None
    session_fields: tuple[str, ...] = ()
    header_fields: tuple[tuple[str, str], ...] = ()


class Format(Protocol):
    """Reads the values of one stream, in order."""

    def read(self, value: bytes) -> Sequence[SessionRecord]:
        """Return the records that ``value`` holds: none, one, or several of several sessions.

        Whatever a line holds, it becomes a record: unknown lines pass through, none is dropped.

        Raises:
            RecordError: It belongs to no session, and says why and what to do.
        """
        ...


class FormatEntry(NamedTuple):
    """A format as the table knows it.

    Attributes:
        make: Makes a reader of one stream; its memory may hold what an earlier one left there.
        is_like: Tells whether a value is one that only this format has; never raises.
        said: Returns the message that a record of it holds, None for none.
    """

    make: Callable[[FormatOptions, Memory], Format]
    is_like: Callable[[bytes], bool]
    said: Callable[[JsonLine], Said | None] = said_in
