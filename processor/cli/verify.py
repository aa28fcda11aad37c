"""``processor verify``: prove from the topics that every promise was kept."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
from aiokafka import AIOKafkaConsumer, TopicPartition

from processor.cli.options import KAFKA, output_option, session_name, settings_options
from processor.cli.progress import Advance, counted, progress_bar
from processor.cli.since import SINCE
from processor.cli.verify_position import Position
from processor.core.errors import ConfigError
from processor.kafka.connection import client_settings
from processor.kafka.groups import group_offsets
from processor.kafka.reading import message_count, partition_reader, read_to_end
from processor.kafka.topics import describe_topic
from processor.proof.message import ALONE, Message, Starts, Topics
from processor.proof.report import Report
from processor.proof.verify import PartitionProof, SplitSessions, prove_partition
from processor.settings import Settings

_READ: Final = ("records_topic", "chunks_topic", "dead_letter_topic")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be verified, and how.

    Attributes:
        session: This session alone.
        since_ms: What came from this instant on (Unix milliseconds) alone.
        is_recomputed: Every chunk is computed again too.
        is_chunks_only: The log is not read.
    """

    session: str | None
    since_ms: int | None
    is_recomputed: bool
    is_chunks_only: bool

    @property
    def reads_letters(self) -> bool:
        """Whether dead letters, which have no session, are part of it."""
        return self.session is None and not self.is_chunks_only


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
@click.option(
    "--chunks-only",
    "is_chunks_only",
    is_flag=True,
    help="Read the chunks topic alone: t, digests, budgets, by what the chunks say.",
)
@click.option("--session", metavar="NAME", callback=session_name, help="Judge one session alone.")
@click.option(
    "--since",
    "since_ms",
    type=SINCE,
    help="Judge what came from then on: 2026-01-31T08:00Z, or 90m, 12h, 7d before now.",
)
@click.option(
    "--resume",
    "position_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep in FILE which partitions are done, and go on from there after an interruption.",
)
@output_option
@settings_options(*KAFKA, *_READ)
def verify(  # noqa: PLR0913 - click passes each option
    settings: Settings,
    app_id: str | None,
    position_file: Path | None,
    output: str,
    *,
    session: str | None,
    since_ms: int | None,
    is_recomputed: bool,
    is_chunks_only: bool,
) -> int:
    """Compare all chunks with all records, and exit 1 if a promise is broken.

    Reads the records, chunks and dead-letter topics from start to end, committed messages
    alone, without the worker's code; a running worker does no harm. Prints the first fault of
    each kind. With --recompute the worker's core makes every chunk once more, by the policy and
    the counter that the chunk names; what the clock closed is taken as given.
    """
    if is_chunks_only and is_recomputed:
        msg = "--recompute needs the log, which --chunks-only leaves unread"
        raise click.UsageError(msg)
    if app_id is not None:
        settings = settings.model_copy(update={"app_id": app_id})
    asked = Asked(session, since_ms, is_recomputed, is_chunks_only)
    report = asyncio.run(_verify(settings, asked, position_file))
    if output == "json":
        click.echo(json.dumps(report.as_json(), ensure_ascii=False))
    else:
        click.echo("\n".join(report.lines()))
    return 0 if report.is_clean else 1


async def _verify(settings: Settings, asked: Asked, position_file: Path | None) -> Report:
    topics = Topics(*(getattr(settings, field) for field in _READ))
    read = [topics.chunks] if asked.is_chunks_only else list(topics)
    counts = {it: (await describe_topic(settings, it)).partition_count for it in read}
    if len(set(counts.values())) > 1:
        msg = f"topics differ in their number of partitions ({counts}): run processor topics check"
        raise ConfigError(msg)
    about = {"topics": topics, "partitions": counts[topics.chunks], **dataclasses.asdict(asked)}
    position = None
    if position_file is not None:
        position = Position(position_file, json.loads(json.dumps(about)))
    processed = await group_offsets(settings) if settings.app_id and len(read) > 1 else {}
    verification = _Verification(settings, topics, asked, processed)
    length = await message_count(client_settings(settings), read[0], counts[topics.chunks])
    with progress_bar("verifying", length) as bar:
        for number in range(counts[topics.chunks]):
            await verification.prove(number, position, bar.update)
    if position is not None:
        position.end()
    return verification.report()


class _Verification:
    """The proofs of one partition after the other."""

    def __init__(
        self, settings: Settings, topics: Topics, asked: Asked, processed: dict[int, int]
    ) -> None:
        self._client = client_settings(settings)
        self._topics = topics
        self._asked = asked
        self._processed = processed
        self._split = SplitSessions()
        self._report = Report()

    def report(self) -> Report:
        """Return what was found on all partitions."""
        if self._asked.is_chunks_only:
            self._report.take_chunks_for_log()
        self._split.warn(self._report)
        return self._report

    async def prove(self, number: int, position: Position | None, advance: Advance) -> None:
        """Prove a partition, unless that is done."""
        done = position and position.of(number)
        if done:
            report, keys = done
            self._split.take_known(keys)
            advance(report.message_count)
        else:
            proof, report = await self._proved(number, advance)
            keys = self._split.take(proof.keys)
            if position is not None:
                position.keep(number, report, keys)
        self._report.add(report)

    async def _proved(self, number: int, advance: Advance) -> tuple[PartitionProof, Report]:
        asked, report = self._asked, Report()
        async with AsyncExitStack() as stack:

            async def opened(
                topic: str, *, is_read: bool
            ) -> tuple[int, AsyncIterator[Sequence[Message]]]:
                if not is_read:
                    return 0, _nothing()
                place = TopicPartition(topic, number)
                reader = await stack.enter_async_context(partition_reader(self._client, place))
                start = await _start(reader, place, asked.since_ms)
                return start, read_to_end(reader, place)

            topics, is_log_read = self._topics, not asked.is_chunks_only
            log_start, records = await opened(topics.records, is_read=is_log_read)
            chunks_start, chunks = await opened(topics.chunks, is_read=True)
            letters_start, letters = await opened(topics.dead_letters, is_read=asked.reads_letters)
            starts = Starts(log_start, chunks_start, letters_start)
            if not is_log_read:
                starts, chunks = ALONE._replace(chunks=chunks_start), counted(chunks, advance)
            proof = PartitionProof(topics, number, report, starts, self._processed.get(number, 0))
            if asked.is_recomputed:
                proof.recompute()
            if asked.session is not None:
                proof.keep_to(asked.session)
            await prove_partition(proof, counted(records, advance), chunks, letters)
        return proof, report


async def _start(reader: AIOKafkaConsumer, place: TopicPartition, since_ms: int | None) -> int:
    """Return where a topic's partition is read from, and stand there."""
    if since_ms is None:
        start: int = (await reader.beginning_offsets([place]))[place]
    else:
        found = (await reader.offsets_for_times({place: since_ms}))[place]
        start = found.offset if found else (await reader.end_offsets([place]))[place]
    reader.seek(place, start)
    return start


async def _nothing() -> AsyncIterator[Sequence[Message]]:
    for messages in list[Sequence[Message]]():
        yield messages
