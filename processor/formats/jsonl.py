"""Any lines: each is a record, of the session that it holds where told, or that its stream has."""

import json
from collections.abc import Sequence

from processor.core.errors import NoSessionError
from processor.formats.format import FormatOptions, Memory, SessionRecord


class JsonLines:
    """Reads any lines.

    Args:
        options: Say where a line holds its session, or name one.
        memory: Not used.
    """

    def __init__(self, options: FormatOptions, memory: Memory) -> None:  # noqa: ARG002
        self._options = options

    def read(self, value: bytes) -> Sequence[SessionRecord]:
        """Return the line as a record."""
        found = (_session_at(path, value) for path in self._options.session_fields)
        session = next((it for it in found if it is not None), None) or self._options.session
        if not session:
            fields = " or ".join(map(repr, self._options.session_fields)) or "any place"
            message = f"no session at {fields}; give every line one, or name one for the stream"
            raise NoSessionError(message)
        return (SessionRecord(session, value),)


def _session_at(path: str, value: bytes) -> str | None:
    try:
        held = json.loads(value)
    except (ValueError, RecursionError):
        return None
    for key in path.split("."):
        held = held.get(key) if isinstance(held, dict) else None
    return str(held) if isinstance(held, str | int) and not isinstance(held, bool) else None


def is_anything(first_values: Sequence[bytes]) -> bool:
    """Return True: a line is a line."""
    return True
