"""A tool's transcript: each line is a record, to the byte, of the session that a rule names.

Order is the order of lines, never of time. A line that names no session (an empty one, a torn one,
a kind that the tool gives none) belongs to the session named last, and before any to that of its
stream. That session is all there is to remember.
"""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final

from processor.core.records import RECORD_ID
from processor.formats.fields import (
    EVENT_TIME,
    chosen_headers,
    is_time,
    session_in,
    stream_session,
)
from processor.formats.format import FormatOptions, Headers, Memory, SessionRecord
from processor.formats.json_line import JsonLine

#: Under this name the session is remembered.
SESSION: Final = "session"
_NAMELESS: Final = (
    "the line names no session, nor did one before it, and its stream has none;"
    " read the file from its first line, or name a session"
)
_ID_CHARS: Final = 32

#: Returns the session that a line names, given the one remembered; None where it names none.
LineRule = Callable[[JsonLine, str | None], str | None]


class Transcript:
    """Reads the lines of one transcript.

    Args:
        rule: Which session a line names.
        id_key: Member that names a line once in its session, where the tool writes one.
        options: What a person chose; their fields come before the tool's rule.
        memory: Holds the session named last.
    """

    def __init__(
        self, rule: LineRule, id_key: str | None, options: FormatOptions, memory: Memory
    ) -> None:
        self._rule = rule
        self._id_key = id_key
        self._options = options
        self._memory = memory
        self._held = memory.get(SESSION)

    def read(self, value: bytes) -> Sequence[SessionRecord]:
        """Return the line as a record.

        Raises:
            NoSessionError: Neither the line, nor one before it, nor the stream names a session.
            SessionKeyError: The stream's session has no UTF-8 form.
        """
        line = JsonLine(value)
        session = session_in(map(line.at, self._options.session_fields))
        if session is None:
            session = self._rule(line, self._held)
        if session != self._held:  # most lines name the one named last, which is checked
            session = session_in((session,)) or self._held
        if session is None:
            session = stream_session(self._options, _NAMELESS)
        # An empty line decides nothing: a header may still come.
        if session != self._held and value.strip():
            self._held = self._memory[SESSION] = session
        return (SessionRecord(session, value, self._headers(line, value)),)

    def _headers(self, line: JsonLine, value: bytes) -> Headers:
        made = []
        time = line.text("timestamp")
        if time is not None and is_time(time):
            made.append((EVENT_TIME, time.encode()))
        if self._id_key is not None and line.text(self._id_key) is not None:
            # Of the bytes, which hold the id: should a tool write two lines with one id, they stay
            # two, and only what is the same to the byte is a repeat.
            made.append((RECORD_ID, sha256(value).hexdigest()[:_ID_CHARS].encode()))
        made += chosen_headers(self._options, line.at)
        return tuple(made)
