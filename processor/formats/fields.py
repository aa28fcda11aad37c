"""Values of fields as sessions and as headers."""

import json
import re
from collections.abc import Callable, Iterable
from typing import Final

from processor.core.errors import NoSessionError, SessionKeyError
from processor.formats.format import FormatOptions, Headers

EVENT_TIME: Final = "event-time"

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


def chosen_headers(options: FormatOptions, find: Callable[[str], object]) -> Headers:
    """Return the headers that a person chose: a text as it is, any other value as JSON.

    Args:
        options: Name them.
        find: Returns what a value holds at one of their places; None for nothing.
    """
    found = ((name, _header_value(find(place))) for name, place in options.header_fields)
    return tuple((name, value) for name, value in found if value is not None)


def is_time(text: str) -> bool:
    """Tell whether a text is a time as RFC 3339 writes it."""
    return _RFC_3339.fullmatch(text) is not None


def _header_value(value: object) -> bytes | None:
    if value is None:
        return None
    try:
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    except RecursionError:  # what could just be read may be too deep to be written
        return None
    return text.encode(errors="replace")


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
