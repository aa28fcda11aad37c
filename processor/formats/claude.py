"""Claude Code's transcripts: ``<session>.jsonl``, and those of its sub-agents.

A line names its session, but for a few kinds (``file-history-snapshot``, ``summary``) that stand
between lines which do. A file may open with one: its name is the session's id, so the stream's own
session is the right one.

A sub-agent writes its parent's ``sessionId`` and an ``agentId`` of its own, in a file of its own.
The same ``agentId`` occurs under several parents (anthropics/claude-code#44597), so both name it.
Versions before that wrote side chains into the parent's file, without an ``agentId``: nothing tells
one from another, and they stay where they stand.
"""

from processor.formats.content import Said, text_of
from processor.formats.format import FormatOptions, Memory
from processor.formats.json_line import JsonLine
from processor.formats.transcript import Transcript


def claude(options: FormatOptions, memory: Memory) -> Transcript:
    """Make a reader of one transcript of Claude Code."""
    return Transcript(_session_of, "uuid", options, memory)


def is_claude(line: JsonLine) -> bool:
    """Tell whether only Claude Code would write such a line."""
    kind = line.text("type")
    if kind is None:
        return False
    if line.text("sessionId") is not None:
        return "isSidechain" in line or kind == "queue-operation"
    return (kind == "file-history-snapshot" and "snapshot" in line) or (
        kind == "summary" and "leafUuid" in line
    )


def said(line: JsonLine) -> Said | None:
    """Return the message that a line holds; what tools answered comes as the user's."""
    kind, message = line.text("type"), line.member("message")
    if kind not in {"user", "assistant"} or not isinstance(message, dict):
        return None
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    is_answer = any(isinstance(it, dict) and it.get("type") == "tool_result" for it in parts)
    return Said("tool" if is_answer else kind, text_of(content))


def _session_of(line: JsonLine, held: str | None) -> str | None:
    session = line.text("sessionId")
    if session is None or line.member("isSidechain") is not True:
        return session
    agent = line.text("agentId")
    return session if agent is None else f"{session}/agent-{agent}"
