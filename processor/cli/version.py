"""``processor --version``: the release, and what it was made of."""

import json
import os
from importlib.metadata import distribution
from typing import Final

import click

_DISTRIBUTION: Final = "poimen-processor"
#: An image has no other way to tell.
_COMMIT: Final = "SOURCE_COMMIT"


def print_version(context: click.Context, _: click.Parameter, is_asked: bool) -> None:  # noqa: FBT001  # click's signature
    """Print name, version and, where it is known, commit; then end."""
    if is_asked and not context.resilient_parsing:
        commit = _commit()
        of = f" ({commit})" if commit else ""
        click.echo(f"processor {distribution(_DISTRIBUTION).version}{of}")
        context.exit()


def _commit() -> str | None:
    """Return the commit: what the image says, or where pip got it from, if from a repository."""
    origin = json.loads(distribution(_DISTRIBUTION).read_text("direct_url.json") or "{}")
    commit: str | None = origin.get("vcs_info", {}).get("commit_id")
    return os.environ.get(_COMMIT) or commit
