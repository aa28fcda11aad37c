"""Any lines: each is a record, of the session that it holds where told, or that its stream has."""

from collections.abc import Sequence

from processor.formats.fields import chosen_headers, session_in, stream_session
from processor.formats.format import FormatOptions, Memory, SessionRecord
from processor.formats.json_line import JsonLine


class JsonLines:
    """Reads any lines.

    Args:
        options: Say where a line holds its session, or name one.
        memory: Not used: of which session a line is that names none, nothing before it tells.
    """

    def __init__(self, options: FormatOptions, memory: Memory) -> None:  # noqa: ARG002  # a row of the table
        self._options = options

    def read(self, value: bytes) -> Sequence[SessionRecord]:
        """Return the line as a record.

        Raises:
            NoSessionError: Neither the line nor its stream names a session.
            SessionKeyError: The stream's session has no UTF-8 form.
        """
        options = self._options
        if not (options.session_fields or options.header_fields):
            return (SessionRecord(stream_session(options, "the stream has no session"), value),)
        line = JsonLine(value)
        session = session_in(map(line.at, options.session_fields))
        if session is None:
            fields = " or ".join(map(repr, options.session_fields))
            why = f"no session at {fields}; give every line one, or name one for the stream"
            session = stream_session(options, why)
        return (SessionRecord(session, value, chosen_headers(options, line.at)),)
