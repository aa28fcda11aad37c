"""The messages that a call of a model tells of, by OpenTelemetry's conventions for generative AI.

A call repeats the whole conversation so far: instructions, input, then its output, which the next
call's input repeats again in a slightly other form (without ``finish_reason``, arguments as an
object in place of a text). So messages are compared by role and parts alone.

Source:
    Semantic conventions for GenAI, 1.37 and later (``gen_ai.input.messages`` and its kin, in a span
    or in the event ``gen_ai.client.inference.operation.details``), and before it the events
    ``gen_ai.user.message`` and its kin, of spans and of logs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from processor.formats.otlp import Entry, Json, attributes, plain
from processor.formats.strict_json import UNREADABLE, canonical, parse

INSTRUCTIONS: Final = "gen_ai.system_instructions"
INPUT: Final = "gen_ai.input.messages"
OUTPUT: Final = "gen_ai.output.messages"
_KEYS: Final = (INSTRUCTIONS, INPUT, OUTPUT)
_AROUND_OTHERS: Final = ("invoke_agent", "invoke_workflow")
_CHOICE: Final = "gen_ai.choice"
#: Events of the older conventions, and whose message each is.
_ROLES: Final = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    _CHOICE: "assistant",
}
#: In an event's attributes beside the message's own fields.
_NOT_FIELDS: Final = (
    "event.name",
    "gen_ai.system",
    "gen_ai.provider.name",
    "gen_ai.event.content",
)
#: Of no weight when messages are compared: only one of the two forms has them.
_PASSING: Final = ("finish_reason", "index")
#: Hex digits by which a message is known again: 64 bits.
DIGEST_CHARS: Final = 16


@dataclass(frozen=True, slots=True)
class Call:
    """What one call of a model tells.

    Attributes:
        instructions: A message of the system, which stands apart from the history; None for none.
        messages: The history as the call gives it, its output last.
        is_around_others: It is the span of an agent: what it was asked, what it answered in the
            end, and between them calls that have spans of their own, or none.
    """

    instructions: Json | None
    messages: tuple[Json, ...]
    is_around_others: bool = False


def call_of(entry: Entry) -> Call | None:
    """Return the call that an entry tells of; None for any other entry.

    An entry whose messages can't be read in full (cut off at a limit, of another shape) is such an
    other entry: what was read of it might not be all.
    """
    for fields in _fields_of(entry):
        if any(key in fields for key in _KEYS):
            return _call(fields, entry.attribute("gen_ai.operation.name"))
    found = list(_older_messages(entry))
    messages = tuple(it for it in found if it is not None)
    return Call(None, messages) if messages and len(messages) == len(found) else None


def is_single_message(entry: Entry) -> bool:
    """Tell whether a log record is one message of a call, of which others tell the rest."""
    return _event_name(entry.data, entry.attributes) in _ROLES


def digest_of(message: Json) -> str:
    """Return what a message is known by again: a hash of its role and parts."""
    role = message.get("role")
    # A tool may answer two calls alike; an answer of the model has an id in one form only.
    call_id = message.get("id") if role == "tool" else None
    return sha256(canonical([role, call_id, _parts(message)])).hexdigest()[:DIGEST_CHARS]


def _fields_of(entry: Entry) -> Iterator[Json]:
    """Yield where the messages of the present conventions may stand."""
    yield entry.attributes
    body = plain(entry.data.get("body"))
    if isinstance(body, dict):
        yield body
    yield from (fields for _, fields in _events(entry))


def _call(fields: Json, operation: object) -> Call | None:
    instructions, given, made = (_list(fields.get(key)) for key in _KEYS)
    if instructions is None or given is None or made is None:
        return None
    system = {"role": "system", "parts": instructions} if instructions else None
    messages = (*given, *made)
    return Call(system, messages, operation in _AROUND_OTHERS) if system or messages else None


def _list(value: object) -> list[Json] | None:
    """Return a list of objects, from JSON as a text or from typed values; None for another."""
    value = _from_text(value)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(it, dict) for it in value):
        return None
    return value


def _from_text(value: object) -> object:
    """Return what a text says in JSON; what is no such text stays as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return parse(value)
    except UNREADABLE:
        return value


def _older_messages(entry: Entry) -> Iterator[Json | None]:
    name = _event_name(entry.data, entry.attributes)
    if name in _ROLES:
        body = plain(entry.data.get("body"))
        yield _older_message(name, body if isinstance(body, dict) else entry.attributes)
    for name, fields in _events(entry):
        if name in _ROLES:
            yield _older_message(name, fields)


def _older_message(name: str, fields: Json) -> Json | None:
    """Return the message of an event; None where it isn't the object it should be."""
    content = _from_text(fields.get("gen_ai.event.content"))
    found = fields | content if isinstance(content, dict) else dict(fields)
    if name == _CHOICE and "message" in found:
        message = _from_text(found.pop("message"))
        if not isinstance(message, dict):
            return None
        found |= message
    made = {key: value for key, value in found.items() if key not in _NOT_FIELDS}
    return {"role": _ROLES[name]} | made


def _events(entry: Entry) -> Iterator[tuple[str, Json]]:
    events = entry.data.get("events")
    for it in events if isinstance(events, list) else ():
        if isinstance(it, dict):
            fields = attributes(it.get("attributes"))
            yield _event_name(it, fields), fields


def _event_name(data: Json, fields: Json) -> str:
    name = data.get("eventName") or data.get("name") or fields.get("event.name")
    return name if isinstance(name, str) else ""


def _parts(message: Json) -> object:
    """Return the parts of a message in the form in which they are compared."""
    parts = message.get("parts")
    if parts is None:
        content = message.get("content")
        parts = [{"type": "text", "content": content}] if isinstance(content, str) else content
        calls = _from_text(message.get("tool_calls"))
        parts = [*_as_list(parts), *_as_list(calls)]
    made = [_part(it) for it in _as_list(parts)]
    # What the model thought is told as output, and seldom given to it again.
    said = [it for it in made if not (isinstance(it, dict) and it.get("type") == "reasoning")]
    if said or made:
        return said or made
    return {key: value for key, value in message.items() if key not in _PASSING}


def _as_list(value: object) -> Sequence[object]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _part(part: object) -> object:
    if not isinstance(part, dict):
        return part
    made = {key: value for key, value in part.items() if value is not None}
    if "result" in made:
        made.setdefault("response", made.pop("result"))
    if isinstance(made.get("function"), dict):
        made["function"] = _part(made["function"])
    if "arguments" in made:
        made["arguments"] = _from_text(made["arguments"])
    return made
