"""A folder, a file in it, and who follows them."""

import pytest

from tests.unit.sources.following import Desk


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "talks"


@pytest.fixture
def desk(folder):
    folder.mkdir()
    return Desk(folder)


@pytest.fixture
def file(folder):
    return folder / "a.jsonl"
