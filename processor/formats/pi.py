"""pi's sessions: ``<time>_<session>.jsonl``, versions 1 to 3.

The first line, ``{"type":"session","id":…}``, is the header; nothing after it names the session.
"""

from processor.formats.content import Said, text_of
from processor.formats.format import FormatOptions, Memory
from processor.formats.header_first import named_by_file
from processor.formats.json_line import JsonLine
from processor.formats.transcript import Transcript


def pi(options: FormatOptions, memory: Memory) -> Transcript:
    """Make a reader of one session of pi."""
    return Transcript(_session_of, "id", named_by_file(options), memory)


def is_pi(line: JsonLine) -> bool:
    """Tell whether a line is the header of a session of pi."""
    return _id_of(line) is not None and "cwd" in line


def said(line: JsonLine) -> Said | None:
    """Return the message that a line holds."""
    message = line.member("message")
    if line.text("type") != "message" or not isinstance(message, dict):
        return None
    role = message.get("role")
    if not isinstance(role, str):
        return None
    if role == "bashExecution":  # a command that the user ran
        command, output = (text_of(message.get(key)) for key in ("command", "output"))
        return Said("user", f"{command}\n{output}")
    return Said("tool" if role == "toolResult" else role, text_of(message.get("content")))


def _session_of(line: JsonLine, held: str | None) -> str | None:
    return _id_of(line) if held is None else None


def _id_of(line: JsonLine) -> str | None:
    return line.text("id") if line.text("type") == "session" else None
