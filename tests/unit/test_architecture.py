"""The arrows of the architecture, read from the imports."""

import ast
import sys

import pytest

from tests.unit.repository import MODULES, PACKAGE, ROOT, imports_of

#: A package may import itself and what stands on its right; nothing else of ours.
ARROWS = {
    "core": {"core"},
    "headers": {"core"},
    "nesting": set(),
    "wire_models": {"core"},
    "wire": {"core", "headers", "nesting", "wire_models"},
    "schema": {"core", "wire_models"},
    "metrics": {"core"},
    "clock": set(),
    "counters": {"core"},
    "formats": {"core"},
    "sources": {"core", "wire"},
    "testing": {"core", "wire", "metrics"},
    "streaming": {"core", "wire", "counters"},
    "protocol": {
        "core",
        "headers",
        "nesting",
        "wire",
        "wire_models",
        "metrics",
        "clock",
        "counters",
        "formats",
    },
    "tracing": {"core", "headers", "protocol"},
    "settings": {"core"},
    "settings_loading": {"core", "settings"},
    "proof": {"core", "headers", "nesting", "wire", "wire_models", "counters"},
    "kafka": {"core", "wire", "metrics", "clock", "settings", "protocol"},
    "doctor": {"core", "clock", "settings", "protocol", "kafka"},
    "client": {"core", "wire_models", "formats", "settings", "settings_loading", "kafka"},
    "agents": {"core", "protocol"},
    "feeding": {"core", "settings", "formats", "sources", "kafka"},
    "ops": {"core", "metrics", "clock", "settings", "protocol", "kafka"},
    "asyncapi": {"core", "settings", "protocol", "schema"},
    "demo": {"core"},
}
#: What puts all of it together; nothing above may import it, so it needs no arrows.
TOP = {"__init__", "__main__", "app", "cli", "partitioned_app", "route_app"}


def package_of(path):
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_arrows_point_one_way(path):
    package = package_of(path)
    if package in TOP:
        return
    ours = {name.split(".")[1] for name in imports_of(path) if name.startswith("processor.")}
    assert ours <= ARROWS[package] | {package}


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("core/*.py")), ids=lambda path: path.name)
def test_the_core_imports_the_standard_library_and_itself(path):
    impure = {"asyncio", "socket", "time", "datetime", "logging", "os", "random", "threading"}
    for name in imports_of(path):
        top = name.split(".")[0]
        assert name.startswith("processor.core") or (
            top in sys.stdlib_module_names and top not in impure
        )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_command_line_knows_that_it_is_one(path):
    assert package_of(path) == "cli" or "click" not in imports_of(path)


def test_every_module_has_its_arrows():
    assert ARROWS.keys() | TOP == {package_of(path) for path in MODULES}


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
LOCAL = PACKAGE / "demo" / "processes.py"


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


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
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


def test_what_several_tests_need_is_in_no_test():
    found = {
        (str(path.relative_to(ROOT)), name)
        for path in (ROOT / "tests").rglob("*.py")
        for name in imports_of(path)
        if name.rpartition(".")[2].startswith("test_")
    }
    assert found == set()
