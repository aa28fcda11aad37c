"""The command line: the table of verbs, and errors turned into exit codes."""

import importlib
import logging
import os
import traceback
from collections.abc import Mapping
from typing import Final

import click

from processor.cli.version import print_version
from processor.core.errors import (
    ConfigError,
    OwnershipError,
    ProcessorError,
    StateError,
    UnreachableError,
)

# Where each verb's click command lives. A verb is imported when it is asked for: `processor
# chunk` needs neither Faust nor aiokafka.
VERBS: Final[Mapping[str, str]] = {
    "worker": "processor.cli.worker:worker",
    "route": "processor.cli.route:route",
    "demo": "processor.cli.demo:demo",
    "chunk": "processor.cli.chunk:chunk",
    "produce": "processor.cli.produce:produce",
    "tail": "processor.cli.tail:tail",
    "verify": "processor.cli.verify:verify",
    "explain": "processor.cli.explain:explain",
    "rechunk": "processor.cli.rechunk:rechunk",
    "dead-letters": "processor.cli.dead_letters:dead_letters",
    "topics": "processor.cli.topics:topics",
    "state": "processor.cli.state:state",
    "doctor": "processor.cli.doctor:doctor",
    "config": "processor.cli.config:config",
    "schema": "processor.cli.schema:schema",
    "health": "processor.cli.health:health",
    "completion": "processor.cli.completion:completion",
}

# The first that an error is an instance of gives the code; 69, 70 and 78 are sysexits.h's
# EX_UNAVAILABLE, EX_SOFTWARE and EX_CONFIG.
EXIT_CODES: Final[tuple[tuple[type[BaseException], int], ...]] = (
    (UnreachableError, 69),
    (OwnershipError, 70),
    (StateError, 70),
    (ConfigError, 78),
    (click.Abort, 130),  # Ctrl-C, as a shell counts it: 128 + SIGINT
)


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the verbs in the order of the table."""
        return list(VERBS)

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002  # click's signature
        cmd_name: str,
    ) -> click.Command | None:
        """Import the verb's command."""
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), name)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Print version and commit.",
)
def cli() -> None:
    """Turn transcript lines in Kafka into token-bounded chunks of whole records.

    Settings come from flags, the environment, processor.toml, defaults, in this order;
    `processor config show` prints each with its origin.
    """


def main() -> int:
    """Run the command line and return its exit code.

    0 done, 1 failed, 2 usage, 69 broker unreachable, 70 fenced or state fault, 78 configuration,
    130 interrupted. An error is a message on stderr; at log level debug with its traceback.
    """
    try:
        code = cli.main(prog_name="processor", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return _exit_code(click.Abort())
    except ProcessorError as error:
        _report(str(error))
        return _exit_code(error)
    except Exception as error:  # noqa: BLE001  # the top of the process: report it and end
        _report(f"unexpected {type(error).__name__}: {error}")
        return 1
    return code if isinstance(code, int) else 0


def _exit_code(error: BaseException) -> int:
    return next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 1)


def _report(message: str) -> None:
    level = os.environ.get("PROCESSOR_LOG_LEVEL", "").lower()
    if level == "debug" or logging.getLogger().isEnabledFor(logging.DEBUG):
        traceback.print_exc()
    click.echo(f"processor: {message}", err=True)
