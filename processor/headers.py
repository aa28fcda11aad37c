"""Headers of a record that a chunk carries: which, and as what JSON."""

import base64
from collections.abc import Sequence
from typing import Final

import msgspec

from processor.core.records import Headers

#: Headers of W3C's trace context; a chunk's message has them where tracing is on.
TRACEPARENT: Final = "traceparent"
TRACE_CONTEXT: Final = (TRACEPARENT, "tracestate")
#: Digits of a number that a header may say; int() refuses 4,301, and Kafka's offsets have 19.
_MAX_DIGITS: Final = 18
_text: Final = msgspec.json.Encoder().encode


def chosen_headers(headers: Sequence[tuple[str, bytes | None]], names: Sequence[str]) -> Headers:
    """Return those of a record's headers that have one of ``names``, in the order of the names.

    Of a name that comes more than once the last one counts, as in Kafka's ``lastHeader``.
    """
    if not headers:
        return ()
    last = dict(headers)
    return tuple((name, last[name]) for name in names if name in last)


def number_in(value: bytes | None) -> int | None:
    """Return the number that a header's value says, ``None`` where it says none.

    Whoever sent the record may have set it: it may be null, or thousands of digits long.
    """
    is_number = value is not None and value.isdigit() and len(value) <= _MAX_DIGITS
    return int(value) if value is not None and is_number else None


def headers_json(headers: Headers) -> bytes:
    """Return the field of a chunk's record that carries ``headers``, its comma included.

    A value is a string where it is UTF-8, else an object with its ``base64``; null stays null.
    Without headers there is no field.
    """
    if not headers:
        return b""
    return b'"headers":{%b},' % b",".join(b"%b:%b" % (_text(it), _value(at)) for it, at in headers)


def _value(value: bytes | None) -> bytes:
    if value is None:
        return b"null"
    try:
        return _text(value.decode())
    except UnicodeDecodeError:
        return b'{"base64":"%b"}' % base64.b64encode(value)
