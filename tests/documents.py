"""Tables in documents that have to say what the code says."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def rows_in(path, name):
    """Return the rows of the table that stands in a document between ``<!-- name`` and ``end``."""
    text = (ROOT / path).read_text()
    table = re.search(rf"<!-- {name}:.*?-->\n(.*?)<!-- end -->", text, re.DOTALL)[1]
    return table.splitlines()[2:]


def assert_table(path, name, rows):
    """Check such a table, and say what it should be."""
    assert rows_in(path, name) == rows, "\n".join(["the table should be:", *rows])
