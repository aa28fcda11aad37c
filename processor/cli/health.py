"""``processor health``: ask the worker on this machine, for exec probes."""

import http.client
from typing import Final

import click
import msgspec

from processor.cli import options
from processor.core.errors import ConfigError, UnreachableError
from processor.settings import Settings

_TIMEOUT_S: Final = 5.0
_ANSWER_BYTES: Final = 1 << 20
_UNREADABLE: Final = (ValueError, RecursionError)
#: Where to ask a worker that listens everywhere.
_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound here


class _Problem(msgspec.Struct):
    what: str
    remedy: str


class _Told(msgspec.Struct):
    problems: list[_Problem]


@click.command()
@click.option(
    "--ready", is_flag=True, help="Ask whether it is ready, not only whether it is alive."
)
@options.settings_options("http_host", "http_port")
@click.pass_context
def health(context: click.Context, settings: Settings, *, ready: bool) -> None:
    """Say in one line whether the worker is alive, or ready.

    Exit 0 if it is, 1 if not, 69 if nothing answers.
    """
    word, path = ("ready", "/readyz") if ready else ("live", "/livez")
    problems = _ask(settings, path)
    if problems:
        click.echo(f"not {word}: {'; '.join(problems)}")
        context.exit(1)
    click.echo(word)


def _ask(settings: Settings, path: str) -> list[str]:
    """Return what the worker says is wrong."""
    host, port = _LOOPBACK.get(settings.http_host, settings.http_host), settings.http_port
    if not port:
        message = "PROCESSOR_HTTP_PORT is 0, so a worker with these settings answers nowhere"
        raise ConfigError(message)
    connection = http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", path)
        return problems_in(connection.getresponse().read(_ANSWER_BYTES))
    except (OSError, http.client.HTTPException, *_UNREADABLE) as error:
        message = (
            f"no worker answers at {host}:{port}: {error!r}; is it running, under the same "
            "PROCESSOR_HTTP_HOST and PROCESSOR_HTTP_PORT?"
        )
        raise UnreachableError(message) from error
    finally:
        connection.close()


def problems_in(body: bytes) -> list[str]:
    """Return what a worker's answer says is wrong.

    Raises:
        ValueError: It is no worker's.
        RecursionError: Nor is it, and nested too deep.
    """
    told = msgspec.json.decode(body, type=_Told)
    return [f"{it.what} ({it.remedy})" for it in told.problems]
