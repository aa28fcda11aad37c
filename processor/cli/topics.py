"""``processor topics``: create and check the four topics."""

import asyncio
import json

import click

from processor.cli.options import KAFKA, TOPICS, output_option, settings_options
from processor.kafka.topics import DEFAULT_PARTITIONS, check_topics, create_topics
from processor.settings import Settings


@click.group()
def topics() -> None:
    """Create and check the topics of an app."""


@topics.command()
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    default=DEFAULT_PARTITIONS,
    show_default=True,
    help="Partitions of each topic; where records exists, its number counts instead.",
)
@click.option(
    "--replication",
    type=click.IntRange(min=1),
    help="Copies of each partition.  [default: 3, or the number of brokers if that is less]",
)
@settings_options(*KAFKA, *TOPICS, "max_chunk_bytes")
def create(settings: Settings, partitions: int, replication: int | None) -> None:
    """Create the topics that are missing; leave the others as they are."""
    created = asyncio.run(create_topics(settings, partitions=partitions, replication=replication))
    for name in created:
        click.echo(f"created {name}")
    if not created:
        click.echo("all topics were there")


@topics.command()
@output_option
@settings_options(*KAFKA, *TOPICS, "max_chunk_bytes")
def check(settings: Settings, output: str) -> None:
    """Say what is wrong with the topics, and how to put it right; exit 78 if anything is."""
    partitions = asyncio.run(check_topics(settings)).partition_count
    if output == "json":
        click.echo(json.dumps({"ok": True, "partitions": partitions}))
    else:
        click.echo(f"topics are right: 4 topics of {partitions} partitions")
