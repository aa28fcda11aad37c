import json
from importlib import metadata
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from processor.cli import cli

VERSION = metadata.version("poimen-processor")


@pytest.mark.parametrize(
    ("environment", "origin", "printed"),
    [
        ({}, None, f"processor {VERSION}\n"),
        ({}, {"dir_info": {"editable": True}}, f"processor {VERSION}\n"),
        ({}, {"vcs_info": {"commit_id": "abc"}}, f"processor {VERSION} (abc)\n"),
        ({"SOURCE_COMMIT": "def"}, None, f"processor {VERSION} (def)\n"),
        ({"SOURCE_COMMIT": ""}, None, f"processor {VERSION}\n"),
    ],
)
def test_version_tells_the_commit_where_it_is_known(monkeypatch, environment, origin, printed):
    told = SimpleNamespace(
        version=VERSION, read_text=lambda _: None if origin is None else json.dumps(origin)
    )
    monkeypatch.setattr("processor.cli.version.distribution", lambda _: told)
    monkeypatch.delenv("SOURCE_COMMIT", raising=False)
    result = CliRunner(env=environment).invoke(cli, ["--version"])
    assert (result.exit_code, result.output) == (0, printed)
