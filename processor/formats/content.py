"""What a message says, as text, in the shapes that tools and APIs give it.

A message's content is a text or a list of parts. Of the parts count what was said and what tools
were asked and answered; what a model only thought, and images, do not.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from processor.formats.json_line import JsonLine

#: Kind of a part, and where it holds its text.
_TEXTS: Final = {
    "text": ("text", "content"),
    "input_text": ("text",),
    "output_text": ("text",),
    "tool_result": ("content",),
    "tool_call_response": ("response", "result"),
}
#: Kind of a part that calls a tool, and where it holds the arguments.
_CALLS: Final = {"tool_use": "input", "toolCall": "arguments", "tool_call": "arguments"}


class Said(NamedTuple):
    """Who said what; the content may be empty."""

    role: str
    content: str


def said_in(line: JsonLine) -> Said | None:
    """Return the message that a line is itself: ``role`` with ``content``, ``parts`` or calls."""
    role = line.text("role")
    if role is None:
        return None
    parts = (line.member(key) for key in ("content", "parts", "tool_calls"))
    return Said(role, _joined(map(text_of, parts)))


def text_of(content: object) -> str:
    """Return what content says: a text as it is, parts one below the other."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return _joined(text_of(it) if isinstance(it, str) else _part(it) for it in content)
    return ""


def call_of(name: object, arguments: object) -> str:
    """Return the call of a tool: its name, and its arguments as JSON."""
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return f"{name} {arguments}"


def _part(part: object) -> str:
    if not isinstance(part, Mapping):
        return ""
    kind = str(part.get("type"))
    if kind in _CALLS:
        return call_of(part.get("name"), part.get(_CALLS[kind]))
    function = part.get("function")
    if kind == "function" and isinstance(function, Mapping):
        return call_of(function.get("name"), function.get("arguments"))
    found = (part.get(key) for key in _TEXTS.get(kind, ()))
    return next((text_of(it) for it in found if it is not None), "")


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, texts))
