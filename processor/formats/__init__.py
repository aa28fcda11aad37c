"""Transcript formats: what a tool writes in, records of sessions out. The table names every one."""

from collections.abc import Sequence
from typing import Final

from processor.core.errors import ConfigError
from processor.formats.format import Format, FormatEntry, FormatOptions, Memory
from processor.formats.jsonl import JsonLines, is_anything

#: In the order in which a stream is tried; the last takes anything.
FORMATS: Final[dict[str, FormatEntry]] = {"jsonl": FormatEntry(JsonLines, is_anything)}


def detect_format(first_values: Sequence[bytes]) -> str:
    """Return the name of the format that the first values of a stream are in."""
    return next(name for name, entry in FORMATS.items() if entry.is_like(first_values))


def format_named(name: str, options: FormatOptions, memory: Memory) -> Format:
    """Return a reader of one stream.

    Args:
        name: As in the table.
        options: What a person chose.
        memory: What an earlier reader of the same stream remembered; written to.

    Raises:
        ConfigError: There is none of that name.
    """
    entry = FORMATS.get(name)
    if entry is None:
        message = f"no format {name!r}; choose from {', '.join(FORMATS)}"
        raise ConfigError(message)
    return entry.make(options, memory)
