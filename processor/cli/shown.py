"""How values of records are shown to people."""

from datetime import UTC, datetime


def moment(timestamp_ms: int) -> str:
    """Return an instant (Unix milliseconds) as ISO 8601 in UTC."""
    try:
        at = datetime.fromtimestamp(timestamp_ms / 1_000, UTC)
    except (OverflowError, ValueError, OSError):  # a producer may have set any
        return f"{timestamp_ms:,} ms"
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def printable(text: str) -> str:
    """Return text as it is, or escaped where a terminal could take it amiss.

    Whoever wrote a record may have put anything into it, line breaks and terminal codes included.
    """
    return text if text.isprintable() else ascii(text)
