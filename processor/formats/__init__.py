"""Transcript formats: what a tool writes in, records of sessions out. The table names every one."""

from collections.abc import Iterable
from typing import Final

from processor.core.errors import ConfigError
from processor.formats.claude import claude, is_claude
from processor.formats.claude import said as said_to_claude
from processor.formats.codex import codex, is_codex
from processor.formats.codex import said as said_to_codex
from processor.formats.content import Said
from processor.formats.format import Format, FormatEntry, FormatOptions, Memory
from processor.formats.json_line import JsonLine
from processor.formats.jsonl import JsonLines
from processor.formats.otel import is_otel, otel
from processor.formats.pi import is_pi, pi
from processor.formats.pi import said as said_to_pi

#: As many values of a stream are enough to detect its format.
VALUES_TO_DETECT: Final = 20
ANY_LINES: Final = "jsonl"

#: In the order in which a value is tried; any lines are what none recognises.
FORMATS: Final[dict[str, FormatEntry]] = {
    "claude": FormatEntry(claude, lambda value: is_claude(JsonLine(value)), said_to_claude),
    "codex": FormatEntry(codex, lambda value: is_codex(JsonLine(value)), said_to_codex),
    "pi": FormatEntry(pi, lambda value: is_pi(JsonLine(value)), said_to_pi),
    "otel": FormatEntry(otel, is_otel),
    ANY_LINES: FormatEntry(JsonLines, lambda _: False),
}


def detect_format(first_values: Iterable[bytes]) -> str:
    """Return the name of the format that the first values of a stream are in.

    The first value that any format recognises decides, so that more values never change it.
    """
    for value in first_values:
        for name, entry in FORMATS.items():
            if entry.is_like(value):
                return name
    return ANY_LINES


def format_named(name: str, options: FormatOptions, memory: Memory) -> Format:
    """Return a reader of one stream.

    Args:
        name: As in the table.
        options: What a person chose.
        memory: What an earlier reader of the same stream remembered; written to.

    Raises:
        ConfigError: There is none of that name, or a package that it needs is not installed.
    """
    entry = FORMATS.get(name)
    if entry is None:
        message = f"no format {name!r}; choose from {', '.join(FORMATS)}"
        raise ConfigError(message)
    return entry.make(options, memory)


def said_of(line: JsonLine) -> Said | None:
    """Return the message that a record is, by the first format that finds one in it.

    None where there is none, or it is nested too deep to be read.
    """
    try:
        found = (entry.said(line) for entry in FORMATS.values())
        return next((it for it in found if it is not None), None)
    except RecursionError:  # what could just be read may be too deep to be written
        return None
