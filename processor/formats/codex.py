"""Codex CLI's rollouts: ``rollout-<time>-<session>.jsonl``.

The first line is the header: ``session_meta`` with the id in its payload, and in the first versions
the bare payload. A forked rollout, or a sub-agent's, has a header of its own, then its parent's.
"""

from typing import Final

from processor.formats.content import Said, call_of, text_of
from processor.formats.format import FormatOptions, Memory
from processor.formats.header_first import named_by_file
from processor.formats.json_line import JsonLine
from processor.formats.transcript import Transcript

_KINDS: Final = frozenset(
    {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
)
_CALLS: Final = {"function_call": "arguments", "custom_tool_call": "input"}
_ANSWERS: Final = frozenset({"function_call_output", "custom_tool_call_output"})


def codex(options: FormatOptions, memory: Memory) -> Transcript:
    """Make a reader of one rollout of Codex CLI."""
    return Transcript(_session_of, None, named_by_file(options), memory)


def is_codex(line: JsonLine) -> bool:
    """Tell whether only Codex CLI would write such a line."""
    if "type" in line:
        return "payload" in line and line.text("type") in _KINDS
    return _is_bare_header(line) or line.text("record_type") == "state"


def said(line: JsonLine) -> Said | None:
    """Return the message that a line holds; events only repeat what the items say."""
    item = line.member("payload")
    if line.text("type") != "response_item" or not isinstance(item, dict):
        return None
    kind, role = str(item.get("type")), item.get("role")
    if kind == "message" and isinstance(role, str):
        return Said(role, text_of(item.get("content")))
    if kind in _CALLS:
        return Said("assistant", call_of(item.get("name"), item.get(_CALLS[kind])))
    if kind in _ANSWERS:
        output = item.get("output")
        return Said("tool", text_of(output.get("content") if isinstance(output, dict) else output))
    return None


def _is_bare_header(line: JsonLine) -> bool:
    return "type" not in line and "instructions" in line and line.text("id") is not None


def _session_of(line: JsonLine, held: str | None) -> str | None:
    if held is not None:
        return None
    if line.text("type") == "session_meta":
        found = line.at("payload.id") or line.at("payload.session_id")
        return found if isinstance(found, str) else None
    return line.text("id") if _is_bare_header(line) else None
