"""What is read and written, as an AsyncAPI document: for catalogues, portals and code generators.

Of the models alone, as ``schema.py`` is; topics are called by their default names.
"""

from importlib.metadata import version
from typing import Any, Final

from processor.core.records import RECORD_ID
from processor.protocol.dead_letter import ADDED
from processor.schema import chunk_schema
from processor.settings import Settings

_VERSION: Final = "3.0.0"
_BINDING: Final = "0.5.0"
_SCHEMA_FORMAT: Final = "application/schema+json;version=draft-2020-12"
_DEFAULTS: Final = Settings()
_SESSION: Final = {"type": "string", "minLength": 1, "description": "The session."}


def asyncapi_document() -> dict[str, Any]:
    """Return the AsyncAPI 3.0 document of the worker's three topics."""
    topics = {
        "records": (_DEFAULTS.records_topic, "receive", "What agents say, keyed by session."),
        "chunks": (_DEFAULTS.chunks_topic, "send", "Whole records, in order, within a budget."),
        "deadLetters": (_DEFAULTS.dead_letter_topic, "send", "Records without a session, as read."),
    }
    return {
        "asyncapi": _VERSION,
        "info": {
            "title": "processor",
            "version": version("poimen-processor"),
            "description": "Turns agent telemetry into chunks of whole records, exactly once.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/octet-stream",
        "channels": {
            name: {
                "address": topic,
                "description": about,
                "messages": {name: {"$ref": f"#/components/messages/{name}"}},
                "bindings": {"kafka": {"topic": topic, "bindingVersion": _BINDING}},
            }
            for name, (topic, _, about) in topics.items()
        },
        "operations": {
            name: {"action": action, "channel": {"$ref": f"#/channels/{name}"}, "summary": about}
            for name, (_, action, about) in topics.items()
        },
        "components": {"messages": _messages()},
    }


def _messages() -> dict[str, Any]:
    anything = {"description": "Any bytes."}
    return {
        "records": _message(
            "A record", anything, _SESSION, {RECORD_ID: "Names it, for de-duplication."}
        )
        | {"description": "A record without a value (a tombstone) ends its session."},
        "chunks": _message(
            "A chunk",
            {"schemaFormat": _SCHEMA_FORMAT, "schema": chunk_schema()},
            _SESSION,
            {
                "content-type": "application/json",
                "schema-version": "That of the payload.",
                "ce_id": "`session/t`, the same in every run.",
            },
        )
        | {"contentType": "application/json"},
        "deadLetters": _message(
            "A dead letter",
            anything,
            {"description": "As it was: none, empty, or not UTF-8."},
            dict.fromkeys(ADDED, "Why, and where the record stood."),
        ),
    }


def _message(
    title: str, payload: dict[str, Any], key: dict[str, Any], headers: dict[str, str]
) -> dict[str, Any]:
    told = {name: {"type": "string", "description": about} for name, about in headers.items()}
    return {
        "title": title,
        "headers": {"type": "object", "properties": told},
        "payload": payload,
        "bindings": {"kafka": {"key": key, "bindingVersion": _BINDING}},
    }
