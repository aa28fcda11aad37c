"""Pages that are read from the code: the verbs, as ``--help`` says them, and the settings."""

from collections.abc import Iterator
from typing import Any

import click
from docutils.nodes import Node
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from processor.cli import VERBS, cli
from processor.settings import Settings, env_name


class Verbs(SphinxDirective):
    """A section for each verb of the command line."""

    def run(self) -> list[Node]:
        """Return the sections."""
        return self.parse_text_to_nodes("\n".join(_verbs()), allow_section_headings=True)


class AllSettings(SphinxDirective):
    """A list of all settings."""

    def run(self) -> list[Node]:
        """Return the list."""
        return self.parse_text_to_nodes("\n".join(_settings()))


def _verbs() -> Iterator[str]:
    top = click.Context(cli, info_name="processor", terminal_width=88)
    for name in VERBS:
        command = cli.get_command(top, name)
        assert command is not None  # noqa: S101 - it is in the table of verbs
        yield f"## {name}\n"
        yield from _help(command, click.Context(command, parent=top, info_name=name))


def _help(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from _help(inner, click.Context(inner, parent=context, info_name=name))


def _settings() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        yield f"- `{env_name(name)}`: {field.description}{_default(field.get_default())}"


def _default(value: Any) -> str:  # noqa: ANN401 - of any type
    if value is None or value == "":
        return ""
    return f" Default: `{str(value).lower() if isinstance(value, bool) else value}`."


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directives known."""
    app.add_directive("verbs", Verbs)
    app.add_directive("settings", AllSettings)
    return {"parallel_read_safe": True}
