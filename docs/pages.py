"""The page that is read from the code: the verbs, as ``--help`` says them."""

from collections.abc import Iterator

import click
from docutils.nodes import Node
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from processor.cli import VERBS, cli


class Verbs(SphinxDirective):
    """A section for each verb of the command line."""

    def run(self) -> list[Node]:
        """Return the sections."""
        return self.parse_text_to_nodes("\n".join(_verbs()), allow_section_headings=True)


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


def _skips(_app: Sphinx, _what: str, _name: str, it: object, skips: bool, *_: object) -> bool:  # noqa: FBT001 - Sphinx's signature
    # Python documents a named tuple's fields as "Alias for field number 0"; the class tells them.
    return skips or type(it).__name__ == "_tuplegetter"


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the directive known, and leave out what would be told twice."""
    app.add_directive("verbs", Verbs)
    app.connect("autodoc-skip-member", _skips)
    return {"parallel_read_safe": True}
