"""docs/rules.md and docs/architecture.md say what the code does, and name what is there."""

import ast
import re

import pytest

from processor.core.flush import ALONE_RULES, FLUSH_RULES
from tests.documents import ROOT, rows_in


def reasons_in(name):
    return [re.match(r"\| `(\w+)`", row)[1] for row in rows_in("docs/rules.md", name)]


def test_what_closes_a_chunk_stands_in_the_order_of_the_code():
    assert reasons_in("closing") == [why.value for why, _ in FLUSH_RULES]
    assert reasons_in("alone") == [why.value for why, _ in ALONE_RULES]


def defined_in(path):
    """Return the names that a module defines, those of a class behind its own."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names |= {it.id for it in targets if isinstance(it, ast.Name)}
        if name := getattr(node, "name", None):
            names.add(name)
            names |= {
                f"{name}.{it.name}" for it in getattr(node, "body", ()) if hasattr(it, "name")
            }
    return names


@pytest.mark.parametrize("page", ["rules.md", "architecture.md"])
def test_code_that_is_named_is_there(page):
    text = (ROOT / "docs" / page).read_text()
    named = re.findall(r"(?<![\w./])([\w/]+\.py)(?::([A-Za-z_][\w.]*\w))?", text)
    assert named
    for file, name in named:
        path = next((it for it in (ROOT / "processor" / file, ROOT / file) if it.exists()), None)
        assert path is not None, file
        assert not name or name in defined_in(path), f"{file}:{name}"


def test_every_rule_names_the_code_that_keeps_it():
    text = (ROOT / "docs" / "rules.md").read_text()
    rows = re.findall(r"^\| .*\. \|.*$", text, re.MULTILINE)
    assert rows
    assert [it for it in rows if not re.search(r"\| `[\w/]+\.py(:[\w.]+)?` \|$", it)] == []
