"""How the verbs that read transcripts turn their lines into records."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from processor.core.errors import NoSessionError
from processor.formats import detect_format, format_named
from processor.formats.format import Format, FormatOptions, Headers, Memory
from processor.sources.jsonl import SessionRule

#: What a format is detected by.
_FIRST_LINES: Final = 20
_FIRST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person chose about reading transcripts.

    Attributes:
        rule: The session of all lines, or where each holds it.
        format_name: What they are read as; by what they hold when not given.
        is_session_required: A line without a session where the rule says is an error, rather than
            of its file's session.
    """

    rule: SessionRule
    format_name: str | None = None
    is_session_required: bool = False

    def name_for(self, first_lines: Sequence[bytes]) -> str:
        """Return the name of the format of a file that begins so."""
        return self.format_name or detect_format(first_lines[:_FIRST_LINES])

    def reader(self, format_name: str, file: str | None, memory: Memory) -> Format:
        """Return a reader of a file, whose name is the session of what names none.

        Raises:
            ConfigError: There is no such format.
        """
        session = None if file is None else PurePath(file).stem
        if self.rule.field is None:
            return format_named(format_name, FormatOptions(session), memory)
        options = FormatOptions(None if self.is_session_required else session, (self.rule.field,))
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


def first_lines(lines: Iterable[tuple[int, bytes]]) -> list[bytes]:
    """Return the first few of numbered lines: enough to tell their format by."""
    taken: list[bytes] = []
    size = 0
    for _, line in lines:
        taken.append(line)
        size += len(line)
        if len(taken) == _FIRST_LINES or size > _FIRST_BYTES:
            break
    return taken
