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


def commit_in(origin: bytes) -> str | None:
    """Return the commit in pip's note of where it got a package (PEP 610), if it names one."""
    try:
        commit = json.loads(origin)["vcs_info"]["commit_id"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return commit if isinstance(commit, str) else None


def _commit() -> str | None:
    origin = distribution(_DISTRIBUTION).read_text("direct_url.json") or ""
    return os.environ.get(_COMMIT) or commit_in(origin.encode())
