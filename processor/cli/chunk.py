"""``processor chunk``: a file into chunks, without a broker."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

import click

from processor.cli.options import format_option, session_options, settings_options
from processor.core.chunks import Chunk
from processor.core.errors import RecordError
from processor.core.policy import ChunkPolicy
from processor.core.records import Record
from processor.core.sessions import PartitionSessions
from processor.counters import TokenCounter, count_tokens, counter_named
from processor.feeding.choice import STDIN, Choice, SessionRule, split_first
from processor.formats import ANY_LINES
from processor.formats.format import Headers
from processor.settings import Settings
from processor.sources.jsonl import read_lines
from processor.wire import ChunkEncoder, read_value


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@session_options
@format_option
@settings_options("max_tokens", "token_counter")
def chunk(settings: Settings, rule: SessionRule, file: str, format_name: str | None) -> None:
    """Cut the lines of FILE into chunks, one JSON line each; - reads standard input.

    Every line is a record, the empty ones too, and ends at the line feed alone. Chunks are those
    that a worker makes of the same lines: partition 0, the record's number from 0 for the offset. A
    transcript of Claude Code, Codex or pi is known by its first lines, and its sessions are the
    tool's; a line of anything else is of its file's session.
    """
    # Lines of a file carry no time, so nothing closes by time.
    policy = replace(policy_of_lines(settings), flush=None, max_age_s=0.0)
    counter = counter_named(settings.token_counter)
    output = click.get_binary_stream("stdout")
    with records_in_file(file, rule, format_name) as records:
        for line in chunk_records(records, file, policy, counter):
            output.write(line + b"\n")
            # A reader of a pipe wants a chunk when it closes.
            output.flush()


def policy_of_lines(settings: Settings) -> ChunkPolicy:
    """Return the policy of the settings, less what only records of a log have: headers, ends."""
    return replace(
        settings.chunk_policy, carry_headers=(), deduplicate_records=0, forget_ended_after_s=0.0
    )


def chunk_records(
    records: Iterable[tuple[str, bytes, Headers]],
    file: str,
    policy: ChunkPolicy,
    counter: TokenCounter,
) -> Iterator[bytes]:
    """Yield the encoded chunks of records; only open chunks are in memory.

    Args:
        records: Session, bytes and headers of each; a chunk carries none of these.
        file: Where they come from; its name stands for the topic.
        policy: When a chunk closes.
        counter: Counts the tokens of each.
    """
    encoder = ChunkEncoder(policy, counter.name, Path(file).name, 0)
    timeless = ((session, value, None) for session, value, _ in records)
    for closed in cut_records(timeless, policy, counter):
        yield encoder.encode(closed)


def cut_records(
    records: Iterable[tuple[str, bytes, int | None]], policy: ChunkPolicy, counter: TokenCounter
) -> Iterator[Chunk]:
    """Yield the chunks of records, whose number from 0 is their offset.

    Args:
        records: Session, bytes and, where there is one, timestamp (Unix milliseconds) of each.
        policy: When a chunk closes.
        counter: Counts the tokens of each.
    """
    sessions = PartitionSessions(policy)
    for offset, (session, value, timestamp_ms) in enumerate(records):
        text, carried, size = read_value(value)
        (tokens,) = count_tokens(counter, [text], policy.max_tokens)
        yield from sessions.push(
            Record(session, value, tokens, offset, timestamp_ms, size, carried)
        )
    yield from sessions.finish()


def records_of(
    lines: Iterable[tuple[int, bytes]], file: str, choice: Choice, format_name: str
) -> Iterator[tuple[str, bytes, Headers]]:
    """Yield session, bytes and headers of each record of numbered lines.

    Raises:
        RecordError: A line has no session.
    """
    reader = choice.reader(format_name, file, {})
    for number, line in lines:
        try:
            yield from choice.read(reader, line)
        except RecordError as error:
            msg = f"{file}:{number + 1}: {error}"
            raise type(error)(msg) from error


@contextmanager
def records_in_file(
    file: str, rule: SessionRule, format_name: str | None
) -> Iterator[Iterator[tuple[str, bytes, Headers]]]:
    """Open a file, or standard input, and yield session, bytes and headers of its records.

    Raises:
        UsageError: Standard input has no name to be its session.
        RecordError: A line has no session.
    """
    choice = Choice(rule, format_name)
    with click.open_file(file, "rb") as stream:
        first, lines = split_first(read_lines(cast("BinaryIO", stream)))
        name = choice.name_for(first)
        if file == STDIN and name == ANY_LINES and rule == SessionRule():
            msg = "standard input has no name: use --session NAME or --session-field PATH"
            raise click.UsageError(msg)
        yield records_of(lines, file, choice, name)
