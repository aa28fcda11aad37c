"""Tools that name the session once, on the first line.

A forked transcript replays its parent's header after its own: the first one holds. And where the
first line is torn, the next header may be a parent's: then the id in the file's name holds.
"""

import re
from dataclasses import replace
from typing import Final

from processor.formats.format import FormatOptions

_ID_IN_NAME: Final = re.compile(
    r"[-_]([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$"
)


def named_by_file(options: FormatOptions) -> FormatOptions:
    """Return the options with the id that ends the stream's name, as both tools name their files.

    ``rollout-2025-12-09T19-55-16-<id>`` (Codex), ``2025-12-09T00-52-54-397Z_<id>`` (pi).
    """
    found = _ID_IN_NAME.search(options.session or "")
    return replace(options, session=found[1]) if found else options
