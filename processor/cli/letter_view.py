"""What there is to see of a dead letter, as documents and as text."""

import base64
from collections.abc import Mapping
from typing import Any

from processor.cli.shown import moment, printable
from processor.protocol.letters import Letter


def row_of(letter: Letter, *, is_redriven: bool) -> dict[str, Any]:
    """Return what a list says of a letter: nothing of its content, and not its key."""
    record = letter.record
    return {
        "letter": str(letter),
        "partition": letter.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp,
        "reason": letter.reason,
        "origin": letter.origin,
        "bytes": None if record.value is None else len(record.value),
        "replay_count": letter.replay_count,
        "redriven": is_redriven,
    }


def row_text(row: Mapping[str, Any]) -> str:
    """Return a row of a list as a line."""
    size = "end of session" if row["bytes"] is None else f"{row['bytes']:,} bytes"
    parts = [row["letter"], moment(row["timestamp_ms"]), row["reason"], row["origin"], size]
    if row["replay_count"]:
        parts.append(f"sent again {row['replay_count']} times before")
    if row["redriven"]:
        parts.append("redriven")
    return "  ".join(printable(it) for it in parts)


def group_text(group: Mapping[str, Any]) -> str:
    """Return letters that were counted together as a line."""
    parts = [f"{group['count']:,}", group["reason"], f"from {group['origin']}"]
    if group["redriven"]:
        parts.append("redriven")
    return "  ".join(printable(it) for it in parts)


def document_of(letter: Letter) -> dict[str, Any]:
    """Return all of a letter; what is not UTF-8 as ``{"base64": ...}``."""
    record = letter.record
    return {
        "letter": str(letter),
        "timestamp_ms": record.timestamp,
        "reason": letter.reason,
        "origin": letter.origin,
        "key": _carried(record.key),
        "headers": [[name, _carried(value)] for name, value in record.headers],
        "value": _carried(record.value),
    }


def shown(letter: Letter) -> str:
    """Return all of a letter as lines; what a terminal could take amiss is escaped."""
    record = letter.record
    return "\n".join(
        [
            f"{letter}  {moment(record.timestamp)}",
            f"  reason: {printable(letter.reason)}",
            f"  origin: {printable(letter.origin)}",
            f"  key: {_literal(record.key)}",
            *(f"  header {printable(name)}: {_literal(value)}" for name, value in record.headers),
            f"  value: {_literal(record.value)}",
        ]
    )


def _carried(value: bytes | None) -> str | dict[str, str] | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}


def _literal(value: bytes | None) -> str:
    """Return bytes as text in quotes, as bytes where they are no text."""
    carried = _carried(value)
    return repr(value) if isinstance(carried, dict) else "-" if carried is None else repr(carried)
