"""``processor config``: what is set, and where it comes from."""

import json
from pathlib import Path

import click

from processor.cli.options import config_file_option, output_option
from processor.settings import env_name, require_app_id
from processor.settings_loading import load_with_origins


@click.group()
def config() -> None:
    """Show and check the settings of the environment and the file."""


@config.command()
@output_option
@config_file_option
def show(output: str, config_file: Path | None) -> None:
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
@config_file_option
def check(config_file: Path | None) -> None:
    """Exit 78, naming what is wrong, if a worker could not start with these settings."""
    require_app_id(load_with_origins(path=config_file)[0])
    click.echo("settings are right")
