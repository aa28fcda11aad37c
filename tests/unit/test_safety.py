"""What must not come in: code from data, requests from elsewhere, licences nobody has looked at."""

import ast
import re

import pytest

from processor.settings import Settings
from tests import licences
from tests.unit.repository import MODULES, PACKAGE, imports_of, make_recipe

#: Modules that make objects, or code, of what they read.
UNSAFE = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "jsonpickle"}
UNSAFE |= {"marshal", "shelve", "dbm", "yaml", "ruamel", "xmlrpc", "code", "codeop"}
CALLS = {"eval", "exec", "compile", "__import__"}
#: Permissive ones, and two that ask for their own files alone.
ACCEPTED = {"Apache", "MIT", "BSD", "PSF", "CNRI", "MPL", "Repoze"}


def calls_of(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_that_is_read_becomes_objects_or_code(path):
    assert not {name.split(".")[0] for name in imports_of(path) if name} & UNSAFE
    assert not set(calls_of(path)) & CALLS


def test_scan_sees_an_import_within_a_function_and_one_from_a_module(tmp_path):
    path = tmp_path / "unsafe.py"
    path.write_text("def f(x):\n    import pickle\n    from yaml import load\n    eval(x)\n")
    assert set(imports_of(path)) == {"pickle", "yaml"}
    assert set(calls_of(path)) == {"eval"}


def test_faust_is_told_to_decode_nothing():
    """Its codecs have a pickle one, which a topic or an app may name."""
    sources = "\n".join(path.read_text() for path in MODULES)
    assert set(re.findall(r"_serializer=([^\s,)]+)", sources)) == {'"raw"'}


def test_http_listens_to_this_machine_alone_unless_told_otherwise():
    assert Settings().http_host == "127.0.0.1"


def test_page_of_licences_is_as_make_licences_writes_it():
    assert licences.page() == licences.DOCUMENT.read_text()


@pytest.mark.parametrize("name", licences.packages())
def test_licence_is_one_that_was_looked_at(name):
    words = re.findall(r"[A-Za-z]{3,}", licences.licence(name))
    assert ACCEPTED & set(words), licences.licence(name)


def test_licences_that_were_read_by_a_person_are_of_packages_that_are_locked():
    assert licences.READ.keys() <= licences.packages().keys()


def test_audit_fails_where_advisories_are_out_of_reach():
    """Without --strict pip-audit passes when it finds no package at all."""
    recipe = make_recipe("audit")
    assert "pip-audit --strict" in recipe
    assert recipe.endswith("-r deploy/requirements.lock\n")
