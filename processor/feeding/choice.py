"""How a person says what the lines of files are, and the lines that tell it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Final, TypeVar

from processor.core.errors import NoSessionError
from processor.formats import ANY_LINES, VALUES_TO_DETECT, detect_format, format_named
from processor.formats.format import Format, FormatOptions, Headers, Memory

STDIN: Final = "-"
#: What is read ahead at most to detect a format.
_FIRST_BYTES: Final = 1 << 20
Numbered = TypeVar("Numbered", bound=tuple[int, bytes])


@dataclass(frozen=True, slots=True)
class SessionRule:
    """Which session lines belong to, where a person says so: one name, or a field of each line."""

    name: str | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person chose about reading transcripts.

    Attributes:
        rule: The session of all lines, or where each holds it.
        format_name: What they are read as; by what they hold when not given.
        header_fields: Header name, and where a line holds it.
        is_session_required: A line without a session where the rule says is an error, rather than
            of its file's session.
    """

    rule: SessionRule
    format_name: str | None = None
    header_fields: tuple[tuple[str, str], ...] = ()
    is_session_required: bool = False

    def name_for(self, first_lines: Sequence[bytes]) -> str:
        """Return the name of the format of a file that begins so.

        Where a person says which field holds the session, no tool's idea of it counts.
        """
        if self.format_name is not None:
            return self.format_name
        return detect_format(first_lines) if self.rule.field is None else ANY_LINES

    def reader(self, format_name: str, file: str, memory: Memory) -> Format:
        """Return a reader of a file, whose name is the session of what names none.

        Raises:
            ConfigError: There is no such format.
        """
        session = None if file == STDIN else PurePath(file).stem
        if self.rule.name is not None:
            session = self.rule.name
        fields: tuple[str, ...] = ()
        if self.rule.field is not None:
            fields = (self.rule.field,)
            session = None if self.is_session_required else session
        options = FormatOptions(session, fields, self.header_fields)
        return format_named(format_name, options, memory)

    def read(self, reader: Format, line: bytes) -> Iterator[tuple[str, bytes, Headers]]:
        """Yield session, value and headers of each record of a line.

        Raises:
            RecordError: A record has no session.
        """
        for found, value, headers in reader.read(line):
            session = found if self.rule.name is None else self.rule.name
            if session is None:
                message = "a record of it names no session; name one with --session NAME"
                raise NoSessionError(message)
            yield session, value, headers


def split_first(lines: Iterable[Numbered]) -> tuple[list[bytes], Iterator[Numbered]]:
    """Return the first few of numbered lines, to detect a format by, and all of them.

    No more are read than it takes to know: a reader of a pipe waits for each.
    """
    taken: list[Numbered] = []
    size = 0
    rest = iter(lines)
    for line in rest:
        taken.append(line)
        size += len(line[1])
        is_known = detect_format([line[1]]) != ANY_LINES
        if is_known or len(taken) == VALUES_TO_DETECT or size > _FIRST_BYTES:
            break
    return [line for _, line in taken], chain(taken, rest)
