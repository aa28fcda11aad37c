"""What several of these tests ask for."""

import logging
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.fixture(scope="session")
def version(pyproject):
    return pyproject["project"]["version"]


@pytest.fixture
def in_an_empty_folder(tmp_path, monkeypatch):
    """No file of settings lies about."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def quiet_log():
    """Put the log back as it was: a verb sets it up."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
