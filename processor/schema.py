"""The JSON Schema of a chunk, made from the models that read it.

Structure and types are those of ``wire.py``; what a model can't say (a record has one of four
carriers) and what each field is stand here.
"""

from typing import Any, Final

import msgspec

from processor.core.chunks import FlushReason
from processor.wire_models import WireChunk

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_OMITTED: Final = ("omitted", "bytes", "sha256")
#: A record has one of these sets of fields.
CARRIERS: Final = (("value",), ("text",), ("base64",), _OMITTED)
_HEX: Final = {"pattern": "^[0-9a-f]{64}$"}

_ABOUT: Final[dict[str, dict[str, str]]] = {
    "WireChunk": {
        "schema_version": "1; a reader refuses what it doesn't know.",
        "session": "Key of the session.",
        "t": "Index in the session, contiguous from 1.",
        "records": "Whole records, in order; none only in a final chunk that marks an end.",
        "token_count": "Tokens of the records together.",
        "token_counter": "What counted them.",
        "max_tokens": "The budget.",
        "over_budget": "It is one record above the budget.",
        "policy": "The rule it was cut by.",
        "flush": f"Why it closed: {', '.join(FlushReason)}.",
        "final": "An end of session closed it; records after it go on with the next t.",
        "source": "Where its records stand.",
        "previous_digest": "Digest of the chunk before; of t=1 SHA-256 of the session's key.",
        "digest": "SHA-256 of previous_digest and, of each record, its length (u64, big-endian) "
        "and its bytes.",
        "clock": "The clock closed it, not a record of the log.",
    },
    "WireRecord": {
        "offset": "In the records topic; null where it came from no log.",
        "token_count": "Tokens of the record, at least 1.",
        "timestamp_ms": "The log's own time, Unix milliseconds.",
        "value": "The record, where it is JSON: the bytes as they stand here, to the byte.",
        "text": "The record, where it is UTF-8 but not strict JSON.",
        "base64": "The record, where it is anything else.",
        "omitted": "Why it is not here: too_large. It stands in the records topic.",
        "bytes": "Size of an omitted record.",
        "sha256": "SHA-256 of an omitted record.",
        "headers": "Headers that chunks carry, by name.",
    },
    "WireBytes": {"base64": "The bytes."},
    "WirePolicy": {
        "flush_tokens": "Close before this many tokens are exceeded.",
        "idle_s": "Close this long after the last record; 0: never.",
        "max_age_s": "Close this long after the first record; 0: never.",
        "max_chunk_bytes": "Bytes of an encoded chunk.",
        "max_chunk_records": "Records in a chunk.",
        "carry_headers": "Names of headers that chunks carry.",
        "deduplicate_records": "Offsets within which a repeated record-id is left out; 0: never.",
        "forget_ended_after_s": "Seconds after its end at which a session is forgotten; 0: never.",
    },
    "WireSource": {
        "topic": "Of the records, or the name of a file.",
        "partition": "Of the records, and of the chunk.",
        "first_offset": "Of the first record; null without records.",
        "last_offset": "Of the last one; null without records.",
    },
}


def chunk_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a message of the topic of chunks."""
    (chunk,), models = msgspec.json.schema_components([WireChunk], ref_template="#/$defs/{name}")
    for name, model in models.items():
        for field, about in _ABOUT[name].items():
            model["properties"][field]["description"] = about
    record, whole = models["WireRecord"], models["WireChunk"]
    for field in ("text", "base64", *_OMITTED):
        # Left out where it is not used, never null.
        record["properties"][field].pop("default")
        record["properties"][field]["type"] = record["properties"][field].pop("anyOf")[0]["type"]
    record["oneOf"] = [{"required": list(fields)} for fields in CARRIERS]
    for field in ("previous_digest", "digest"):
        whole["properties"][field] |= _HEX
    return {"$schema": _DIALECT, **chunk, "$defs": models}
