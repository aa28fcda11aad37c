"""``processor completion``: the script that has a shell complete verbs and flags."""

from typing import Final

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from processor.cli import cli

_SHELLS: Final = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
def completion(shell: str) -> None:
    """Print what a shell has to read to complete verbs and flags.

    Bash and zsh: eval "$(processor completion bash)" in the start-up file; fish: processor
    completion fish | source.
    """
    # The variable is click's own name for it: with it set, `processor` answers the shell.
    click.echo(_SHELLS[shell](cli, {}, "processor", "_PROCESSOR_COMPLETE").source())
