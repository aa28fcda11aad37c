"""Any lines: each is a record, of the session that its stream has."""

from collections.abc import Sequence

from processor.core.errors import NoSessionError
from processor.formats.format import FormatOptions, Memory, SessionRecord


class JsonLines:
    """Reads any lines.

    Args:
        options: Name the session.
        memory: Not used.
    """

    def __init__(self, options: FormatOptions, memory: Memory) -> None:  # noqa: ARG002
        self._options = options

    def read(self, value: bytes) -> Sequence[SessionRecord]:
        """Return the line as a record."""
        if not self._options.session:
            message = "the line names no session, and its stream has none"
            raise NoSessionError(message)
        return (SessionRecord(self._options.session, value),)


def is_anything(first_values: Sequence[bytes]) -> bool:
    """Return True: a line is a line."""
    return True
