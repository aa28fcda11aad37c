"""Values of fields as sessions and as headers."""

import json
import re
from collections.abc import Iterable
from typing import Final

from processor.core.errors import NoSessionError, SessionKeyError
from processor.formats.format import FormatOptions

EVENT_TIME: Final = "event-time"
RECORD_ID: Final = "record-id"

_RFC_3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def session_in(values: Iterable[object]) -> str | None:
    """Return the first of some values that can name a session: a text, or a whole number."""
    return next((name for it in values if (name := _as_session(it)) is not None), None)


def stream_session(options: FormatOptions, why: str) -> str:
    """Return the session of what names none itself.

    Args:
        options: May hold it.
        why: What is missing and what to do, for the error.

    Raises:
        NoSessionError: They hold none.
        SessionKeyError: It has no UTF-8 form (a file's name may have none).
    """
    if not options.session:
        raise NoSessionError(why)
    if _as_session(options.session) is None:
        message = f"the session {options.session!a} can't be written as UTF-8; name another"
        raise SessionKeyError(message)
    return options.session


def header(name: str, value: object) -> tuple[str, bytes] | None:
    """Return a header: a text as it is, anything else as JSON; None where there is no value."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return name, text.encode(errors="replace")


def is_time(text: str | None) -> bool:
    """Tell whether a text is a time as RFC 3339 writes it."""
    return text is not None and _RFC_3339.fullmatch(text) is not None


def _as_session(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value:
        return None
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return None
    return value
