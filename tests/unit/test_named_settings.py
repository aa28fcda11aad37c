"""Settings, verbs and options that documents and deployment name are there, under these names."""

import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from processor.cli import VERBS, cli
from processor.settings import SECRETS, Settings, env_name

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "Dockerfile", *sorted((ROOT / "docs").rglob("*.md"))]
DEPLOYED = [
    it for it in sorted((ROOT / "deploy").rglob("*")) if it.is_file() and it.suffix != ".lock"
]
SETTINGS = {env_name(it) for it in Settings.model_fields} | {
    env_name(it) + "_FILE" for it in SECRETS
}
#: What Kubernetes injects for a service called processor, and what the tests alone read.
NOT_OURS = {"PROCESSOR_PORT", "PROCESSOR_TEST_CORPUS"}


def identify(path):
    return str(path.relative_to(ROOT))


def words(text):
    """Return the names in a text that look like settings; one cut short ends with _ and is none."""
    found = re.findall(r"\b(?:PROCESSOR|KAFKA)_[A-Z0-9_]*[A-Z0-9]\b", text)
    return set(found) - NOT_OURS


def commands(path):
    """Yield the words of each `processor` command in a document's blocks of code."""
    for block in re.findall(r"^```\w*\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            told = re.match(r"(?:\$ )?(?:[A-Z_]+=\S* )*processor (.*)", line)
            if told:
                yield shlex.split(re.split(r"\s[|>&]", told[1])[0], comments=True)


@pytest.mark.parametrize("path", [*DOCUMENTS, *DEPLOYED], ids=identify)
def test_every_setting_that_is_named_exists(path):
    assert words(path.read_text()) <= SETTINGS


def test_every_setting_of_compose_exists():
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    for name in ("topics", "worker-1", "worker-2"):
        assert services[name]["environment"].keys() <= SETTINGS


@pytest.mark.parametrize("path", DOCUMENTS, ids=identify)
def test_every_command_that_is_shown_is_one(path):
    for arguments in commands(path):
        command = cli
        while isinstance(command, click.Group):
            name = arguments.pop(0)
            command = command.get_command(click.Context(cli), name)
            assert command is not None, name
        options = {it for option in command.params for it in (*option.opts, *option.secondary_opts)}
        given = {it.partition("=")[0] for it in arguments if it.startswith("-")}
        assert given <= options | {"--help"}, (command.name, given - options)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_its_row_in_the_readme(verb):
    assert re.search(rf"^\| `{verb}[ `]", DOCUMENTS[0].read_text(), re.MULTILINE)
