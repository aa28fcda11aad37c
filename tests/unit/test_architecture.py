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
    "schema": {"core", "wire"},
    "metrics": {"core"},
    "clock": set(),
    "counters": {"core"},
    "formats": {"core"},
    "sources": {"core", "wire"},
    "testing": {"core", "wire", "metrics"},
    "streaming": {"core", "wire", "counters"},
    "protocol": {"core", "headers", "nesting", "wire", "metrics", "clock", "counters", "formats"},
    "tracing": {"core", "headers", "protocol"},
    "settings": {"core"},
    "settings_loading": {"core", "settings"},
    "proof": {"core", "headers", "wire", "counters"},
    "kafka": {"core", "wire", "metrics", "clock", "settings", "protocol"},
    "doctor": {"core", "clock", "settings", "protocol", "kafka"},
    "client": {"core", "wire", "formats", "settings", "settings_loading", "kafka"},
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


CLIENTS = {
    "AIOKafkaAdminClient",
    "AIOKafkaClient",
    "AIOKafkaConsumer",
    "AIOKafkaProducer",
    "BatchConsumer",
    "StaticMember",
}
#: Takes a client's arguments from its caller.
TAKERS = {
    "partition_reader",
    "ends_of",
    "latest_entries",
    "stream_entries",
    "message_count",
    "TransactionalProducer",
}
SOURCES = {"client_settings", "consumer_settings"}
#: Knows the demo's own embedded broker alone.
LOCAL = ROOT / "demo" / "processes.py"


def is_logging_in(expression, sources):
    """Tell whether a client's arguments, as written, hold those that the settings give."""
    name = ast.unparse(expression)
    calls = [ast.unparse(it.func) for it in ast.walk(expression) if isinstance(it, ast.Call)]
    return bool(SOURCES & set(calls)) or name in sources


def sources_in(tree):
    """Return the names that a module assigns the settings' arguments to, or takes as such."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg == "client":
            names.add("client")
        for target in node.targets if isinstance(node, ast.Assign) else ():
            is_tuple = isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
            pairs = (
                zip(target.elts, node.value.elts, strict=True)
                if is_tuple
                else [(target, node.value)]
            )
            names |= {ast.unparse(name) for name, value in pairs if is_logging_in(value, set())}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_kafka_client_connects_and_logs_in_as_the_settings_say(path):
    tree = ast.parse(path.read_text())
    sources = sources_in(tree)
    for call in (it for it in ast.walk(tree) if isinstance(it, ast.Call)):
        name, given = ast.unparse(call.func), call.args
        if name == "partial" and ast.unparse(call.args[0]) in TAKERS:
            name, given = ast.unparse(call.args[0]), call.args[1:]
        if name in TAKERS:
            assert is_logging_in(given[0], sources), f"{name} at line {call.lineno}"
        if name in CLIENTS and path != LOCAL:
            spread = [it.value for it in call.keywords if it.arg is None]
            assert any(is_logging_in(it, sources) for it in spread), f"{name} at {call.lineno}"
