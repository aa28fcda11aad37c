"""``processor schema``: what a chunk holds, for programs."""

import json

import click

from processor.asyncapi import asyncapi_document
from processor.schema import chunk_schema


@click.command()
@click.option("--asyncapi", is_flag=True, help="All topics, as an AsyncAPI document.")
def schema(*, asyncapi: bool) -> None:
    """Print the JSON Schema of a chunk, which is one message of the chunks topic."""
    click.echo(json.dumps(asyncapi_document() if asyncapi else chunk_schema(), indent=2))
