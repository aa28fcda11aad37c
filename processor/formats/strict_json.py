"""JSON that any strict parser reads, in one form: sorted keys, no spaces, UTF-8."""

import json
import math
from typing import Any, Final

UNREADABLE: Final = (ValueError, RecursionError)


def parse(text: str | bytes) -> Any:  # noqa: ANN401  # JSON is anything
    """Return what JSON says; numbers that JSON doesn't have (NaN, 1e999) as texts.

    Raises:
        ValueError: It isn't JSON.
        RecursionError: It is nested too deep.
    """
    return json.loads(text, parse_constant=str, parse_float=_finite)


def canonical(value: object) -> bytes:
    """Return the one form of ``value``, made of dicts, lists, texts, finite numbers, None.

    Raises:
        RecursionError: It is nested too deep.
    """
    text = json.dumps(
        value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate has no UTF-8 form, only that of an escape
        return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()


def _finite(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text
