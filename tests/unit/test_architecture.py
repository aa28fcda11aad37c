"""The arrows of the architecture, read from the imports."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "processor"
MODULES = sorted(ROOT.rglob("*.py"))

#: A package may import itself and what stands on its right; nothing else of ours.
ARROWS = {
    "core": {"core"},
    "headers": {"core"},
    "nesting": set(),
    "wire": {"core", "headers", "nesting"},
    "metrics": set(),
    "clock": set(),
    "counters": {"core"},
    "formats": {"core"},
    "sources": {"core", "wire"},
    "testing": {"core", "wire", "metrics"},
    "streaming": {"core", "wire", "counters"},
    "protocol": {"core", "headers", "wire", "metrics", "clock", "counters", "formats"},
    "settings": {"core"},
    "settings_loading": {"core", "settings"},
    "proof": {"core", "headers", "wire", "counters"},
    "kafka": {"core", "wire", "metrics", "clock", "settings", "protocol"},
    "agents": {"core", "protocol"},
    "ops": {"core", "metrics", "clock", "settings", "protocol", "kafka"},
}


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def package_of(path):
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_arrows_point_one_way(path):
    package = package_of(path)
    if package not in ARROWS:
        return
    ours = {name.split(".")[1] for name in imports_of(path) if name.startswith("processor.")}
    assert ours <= ARROWS[package] | {package}


@pytest.mark.parametrize("path", sorted(ROOT.glob("core/*.py")), ids=lambda path: path.name)
def test_the_core_imports_the_standard_library_and_itself(path):
    impure = {"asyncio", "socket", "time", "datetime", "logging", "os", "random", "threading"}
    for name in imports_of(path):
        top = name.split(".")[0]
        assert name.startswith("processor.core") or (
            top in sys.stdlib_module_names and top not in impure
        )


def test_every_package_named_by_an_arrow_exists():
    there = {package_of(path) for path in MODULES}
    assert set(ARROWS) <= there
