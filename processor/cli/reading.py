"""How the verbs that read transcripts turn their lines into records."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Final, TypeVar

from processor.formats import ANY_LINES, VALUES_TO_DETECT, detect_format
from processor.formats.format import FormatOptions
from processor.sources.jsonl import SessionRule

STDIN: Final = "-"
#: What is read ahead at most to detect a format.
_FIRST_BYTES: Final = 1 << 20
Numbered = TypeVar("Numbered", bound=tuple[int, bytes])


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person chose about reading transcripts.

    Attributes:
        rule: The session of the lines, or where each holds it.
        format_name: What they are read as; by what they hold when not given.
    """

    rule: SessionRule
    format_name: str | None = None

    def name_for(self, first_lines: Sequence[bytes]) -> str:
        """Return the name of the format of a file that begins so.

        Where a person says which sessions the lines have, no tool's idea of it counts.
        """
        if self.format_name is not None:
            return self.format_name
        return detect_format(first_lines) if self.rule == SessionRule() else ANY_LINES

    def options_for(self, file: str) -> FormatOptions:
        """Return the options for a file, whose name names the session of what names none."""
        fields = () if self.rule.field is None else (self.rule.field,)
        stem = None if file == STDIN else PurePath(file).stem
        return FormatOptions(self.rule.name or stem, fields)


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
