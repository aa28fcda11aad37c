"""What may be imported, and no more: three modules, each with a list."""

import ast
import importlib
import inspect
from itertools import pairwise
from pathlib import Path

import pytest

PUBLIC = {
    name: importlib.import_module(name)
    for name in ("processor", "processor.client", "processor.testing")
}
NAMES = [(name, it) for name, module in PUBLIC.items() for it in module.__all__]


def statements(module):
    return ast.parse(inspect.getsource(module)).body


def imported(module):
    """Return each name that a module imports, and the module where it is from."""
    found = (it for it in statements(module) if isinstance(it, ast.ImportFrom))
    return {alias.asname or alias.name: it.module for it in found for alias in it.names}


def made(module):
    """Return the names that a module gives something itself."""
    for it in statements(module):
        if isinstance(it, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield it.name
        targets = it.targets if isinstance(it, ast.Assign) else [getattr(it, "target", None)]
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def has_note(module, name):
    """Tell whether a comment for readers stands above what a name is given."""
    lines = Path(module.__file__).read_text().splitlines()
    pairs = pairwise(lines)
    return any(
        note.startswith("#:") and line.startswith((f"{name} =", f"{name}:")) for note, line in pairs
    )


@pytest.mark.parametrize("module", PUBLIC.values(), ids=PUBLIC)
def test_list_of_public_names_is_whole(module):
    names = {it for it in made(module) if not it.startswith("_")}
    if hasattr(module, "__path__"):  # a package makes none: it gives those of its modules
        names |= imported(module).keys()
    assert set(module.__all__) == names


@pytest.mark.parametrize(("module", "name"), NAMES)
def test_public_name_says_what_it_is(module, name):
    value = getattr(PUBLIC[module], name)
    if inspect.isclass(value) or inspect.isfunction(value):
        # A dataclass without one is given its signature.
        assert value.__doc__
        assert not value.__doc__.startswith(f"{name}(")
    else:
        home = imported(PUBLIC[module]).get(name, module)
        assert has_note(importlib.import_module(home), name)
