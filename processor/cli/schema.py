"""``processor schema``: what a chunk holds, for programs."""

import json

import click

from processor.schema import chunk_schema


@click.command()
def schema() -> None:
    """Print the JSON Schema of a chunk, which is one message of the chunks topic."""
    click.echo(json.dumps(chunk_schema(), indent=2))
