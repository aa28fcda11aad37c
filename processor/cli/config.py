"""``processor config``: what is set, where it comes from, and what is wrong with it."""

import json
from pathlib import Path

import click

from processor.cli.options import config_file_option, output_option
from processor.settings import env_name
from processor.settings_loading import load_with_origins


@click.group()
def config() -> None:
    """Show and check the settings of the environment and the file."""


@config.command()
@click.option("--redacted", is_flag=True, help="Hide secrets; they are hidden without it too.")
@output_option
@config_file_option
def show(output: str, config_file: Path | None, *, redacted: bool) -> None:
    """Print each setting with its value and origin; secrets as asterisks."""
    settings, origins = load_with_origins(path=config_file)
    values = settings.model_dump(mode="json")
    if output == "json":
        report = {
            env_name(field): {"value": value, "origin": origins[field]}
            for field, value in values.items()
        }
        click.echo(json.dumps(report, ensure_ascii=False))
        return
    for field, value in values.items():
        shown = "" if value is None else value
        click.echo(f"{env_name(field)}={shown}  ({origins[field]})")


@config.command()
@click.option(
    "--connect",
    is_flag=True,
    help="Also log in to the brokers, check the topics, and ask for the rights of a worker.",
)
@config_file_option
def check(config_file: Path | None, *, connect: bool) -> None:
    """Exit 78, naming all that is wrong, if a worker could not start with these settings.

    With --connect exit 69 if no broker answers. Nothing is created.
    """
    # Neither Faust nor aiokafka is imported to show settings.
    from processor.cli.config_checks import check_broker, check_settings  # noqa: PLC0415

    settings = load_with_origins(path=config_file)[0]
    check_settings(settings)
    if connect:
        check_broker(settings)
        click.echo("settings are right, and so are the topics and a worker's rights")
    else:
        click.echo("settings are right")
