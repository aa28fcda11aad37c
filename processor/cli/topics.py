"""``processor topics``: create and check the four topics."""

import asyncio
import json

import click

from processor.cli.options import KAFKA, TOPICS, output_option, settings_options
from processor.kafka.topics import (
    DEFAULT_PARTITIONS,
    check_route_topics,
    check_topics,
    create_route_topics,
    create_topics,
)
from processor.settings import Settings

_telemetry_option = click.option(
    "--telemetry", is_flag=True, help="Those of `processor route`, in place of a worker's."
)


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
@_telemetry_option
@settings_options(*KAFKA, *TOPICS, "telemetry_topic", "max_chunk_bytes")
def create(
    settings: Settings, partitions: int, replication: int | None, *, telemetry: bool
) -> None:
    """Create the topics that are missing; leave the others as they are."""
    make = create_route_topics if telemetry else create_topics
    created = asyncio.run(make(settings, partitions=partitions, replication=replication))
    for name in created:
        click.echo(f"created {name}")
    if not created:
        click.echo("all topics were there")


@topics.command()
@output_option
@_telemetry_option
@settings_options(*KAFKA, *TOPICS, "telemetry_topic", "max_chunk_bytes")
def check(settings: Settings, output: str, *, telemetry: bool) -> None:
    """Say what is wrong with the topics, and how to put it right; exit 78 if anything is."""
    if telemetry:
        facts = asyncio.run(check_route_topics(settings))[settings.telemetry_topic]
        what = settings.telemetry_topic
    else:
        facts, what = asyncio.run(check_topics(settings)), "4 topics"
    if output == "json":
        click.echo(json.dumps({"ok": True, "partitions": facts.partition_count}))
    else:
        click.echo(f"topics are right: {what} of {facts.partition_count} partitions")
