"""What stands in this repository's own files, for tests that hold them to something."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "processor"
MODULES = sorted(PACKAGE.rglob("*.py"))


def imports_of(path):
    """Yield the modules that a module names in its imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def dockerfile(word):
    """Return the arguments of an instruction, one string for each time it is given."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return re.findall(rf"^{word} (.*)$", text, flags=re.MULTILINE)


def make_recipe(target):
    """Return the commands of a target."""
    text = (ROOT / "Makefile").read_text()
    return re.search(rf"^{re.escape(target)}:.*\n((?:\t.*\n)+)", text, flags=re.MULTILINE)[1]
