"""``processor verify``: prove from the topics that every promise was kept."""

import asyncio
import json
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

import click
from aiokafka import TopicPartition

from processor.cli.options import KAFKA, output_option, settings_options
from processor.cli.progress import Advance, counted, progress_bar
from processor.core.errors import ConfigError
from processor.kafka.connection import client_settings
from processor.kafka.groups import group_offsets
from processor.kafka.reading import message_count, partition_reader, read_to_end
from processor.kafka.topics import describe_topic
from processor.proof.message import Starts, Topics
from processor.proof.report import Report
from processor.proof.verify import PartitionProof, prove_partition, warn_of_split_sessions
from processor.settings import Settings

_READ: Final = ("records_topic", "chunks_topic", "dead_letter_topic")


@click.command()
@click.option(
    "--app-id",
    metavar="TEXT",
    help="App whose progress tells what must be out by now.  [PROCESSOR_APP_ID]",
)
@click.option(
    "--recompute",
    "is_recomputed",
    is_flag=True,
    help="Compute every chunk again from the log and compare it to the byte.",
)
@output_option
@settings_options(*KAFKA, *_READ)
def verify(settings: Settings, app_id: str | None, output: str, *, is_recomputed: bool) -> int:
    """Compare all chunks with all records, and exit 1 if a promise is broken.

    Reads the records, chunks and dead-letter topics from start to end, committed messages
    alone, without the worker's code; a running worker does no harm. Prints the first fault of
    each kind. With --recompute the worker's core makes every chunk once more, by the policy and
    the counter that the chunk names; what the clock closed is taken as given.
    """
    if app_id is not None:
        settings = settings.model_copy(update={"app_id": app_id})
    report = asyncio.run(_verify(settings, is_recomputed=is_recomputed))
    if output == "json":
        click.echo(json.dumps(report.as_json(), ensure_ascii=False))
    else:
        click.echo("\n".join(report.lines()))
    return 0 if report.is_clean else 1


async def _verify(settings: Settings, *, is_recomputed: bool) -> Report:
    topics = _topics(settings)
    counts = {it: (await describe_topic(settings, it)).partition_count for it in topics}
    if len(set(counts.values())) > 1:
        msg = f"topics differ in their number of partitions ({counts}): run processor topics check"
        raise ConfigError(msg)
    partition_count = counts[topics.records]
    report = Report()
    processed = await group_offsets(settings) if settings.app_id else {}

    def proof_of(number: int, starts: Starts) -> PartitionProof:
        proof = PartitionProof(topics, number, report, starts, processed.get(number, 0))
        if is_recomputed:
            proof.recompute()
        return proof

    length = await message_count(client_settings(settings), topics.records, partition_count)
    with progress_bar("verifying", length) as bar:
        proofs = [
            await _prove(settings, number, proof_of, bar.update)
            for number in range(partition_count)
        ]
    warn_of_split_sessions(report, proofs)
    return report


def _topics(settings: Settings) -> Topics:
    return Topics(*(getattr(settings, field) for field in _READ))


async def _prove(
    settings: Settings,
    number: int,
    proof_of: Callable[[int, Starts], PartitionProof],
    advance: Advance,
) -> PartitionProof:
    client, topics = client_settings(settings), _topics(settings)
    async with AsyncExitStack() as stack:
        places = [TopicPartition(topic, number) for topic in topics]
        readers = [
            await stack.enter_async_context(partition_reader(client, place)) for place in places
        ]
        starts = [
            (await reader.beginning_offsets([place]))[place]
            for reader, place in zip(readers, places, strict=True)
        ]
        records, chunks, letters = (
            read_to_end(reader, place) for reader, place in zip(readers, places, strict=True)
        )
        proof = proof_of(number, Starts(*starts))
        await prove_partition(proof, counted(records, advance), chunks, letters)
    return proof
