"""The private names we plug into exist in the installed versions, and their lack is noticed."""

import ast
import importlib
import inspect

import pytest

from processor.core.errors import ConfigError
from processor.kafka import plug_points
from tests.unit.repository import MODULES, PACKAGE

LIBRARIES = ("aiokafka", "asyncio", "faust", "mode")
#: Of these Python itself notices that something is missing.
CHECKED = ("aiokafka.abc", "aiokafka.protocol")
#: Python's and mode's own, made with each class.
MADE = ("_abc_impl", "_is_protocol", "logger")
OURS = [
    importlib.import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
    for path in [
        *(PACKAGE / "kafka").glob("*.py"),
        PACKAGE / "partitioned_app.py",
        PACKAGE / "cli" / "running.py",
    ]
]


def overridden():
    """Yield each of our classes, and what it has in place of a library's."""
    for module in OURS:
        for made in vars(module).values():
            if not inspect.isclass(made) or made.__module__ != module.__name__:
                continue
            bases = [it for it in made.__mro__ if it.__module__.split(".")[0] in LIBRARIES]
            for name in vars(made).keys() - MADE:
                owner = next((it for it in bases if name in vars(it)), None)
                if owner and name[:2] != "__" and not owner.__module__.startswith(CHECKED):
                    yield made, name


def replaced():
    """Yield each library's module, and the name in it that is given something of ours."""
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                owner, _, name = ast.unparse(target).rpartition(".")
                if owner.split(".")[0] in LIBRARIES:
                    yield importlib.import_module(owner), name


def test_whatever_of_a_library_is_overridden_is_checked():
    """A release that renames it would call its own, in silence."""
    points = [(it, names) for it, names in plug_points.PLUG_POINTS.items() if inspect.isclass(it)]
    assert [
        (made.__name__, name)
        for made, name in overridden()
        if not any(issubclass(made, it) and name in names for it, names in points)
    ] == []


def test_whatever_in_a_library_is_replaced_is_checked():
    found = list(replaced())
    assert len(found) >= 4
    assert [it for it in found if it[1] not in plug_points.PLUG_POINTS.get(it[0], ())] == []


def test_the_installed_versions_have_every_plug_point():
    plug_points.check_plug_points()


def test_a_release_that_lacks_one_stops_the_start(monkeypatch):
    class Renamed:
        pass

    monkeypatch.setitem(plug_points.PLUG_POINTS, Renamed, ("_commit",))
    with pytest.raises(ConfigError, match=r"Renamed\._commit"):
        plug_points.check_plug_points()
