"""``processor chunk``: a file into chunks, without a broker."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

import click

from processor.cli.options import format_option, session_options, settings_options
from processor.cli.reading import STDIN, Choice, split_first
from processor.core.errors import NoSessionError, RecordError
from processor.core.policy import ChunkPolicy
from processor.core.records import Record
from processor.core.sessions import PartitionSessions
from processor.counters import TokenCounter, count_tokens, counter_named
from processor.formats import ANY_LINES, format_named
from processor.formats.format import Format
from processor.settings import Settings
from processor.sources.jsonl import SessionRule, read_lines
from processor.wire import ChunkEncoder, read_value

NAMELESS: Final = "an entry names no session; use --session NAME"


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
    policy = ChunkPolicy(
        max_tokens=settings.max_tokens,
        max_chunk_bytes=settings.max_chunk_bytes,
        max_chunk_records=settings.max_chunk_records,
    )
    counter = counter_named(settings.token_counter)
    output = click.get_binary_stream("stdout")
    choice = Choice(rule, format_name)
    with click.open_file(file, "rb") as stream:
        first, lines = split_first(read_lines(cast("BinaryIO", stream)))
        name = choice.name_for(first)
        if file == STDIN and name == ANY_LINES and rule == SessionRule():
            msg = "standard input has no name: use --session NAME or --session-field PATH"
            raise click.UsageError(msg)
        reader = format_named(name, choice.options_for(file), {})
        for line in chunk_lines(lines, file, reader, policy, counter):
            output.write(line + b"\n")
            # A reader of a pipe wants a chunk when it closes.
            output.flush()


def chunk_lines(
    lines: Iterable[tuple[int, bytes]],
    file: str,
    reader: Format,
    policy: ChunkPolicy,
    counter: TokenCounter,
) -> Iterator[bytes]:
    """Yield the encoded chunks of numbered lines; only open chunks are in memory.

    Args:
        lines: Numbers from 0, and lines without their line feed.
        file: Where they come from; its name stands for the topic.
        reader: Makes records of the lines.
        policy: When a chunk closes.
        counter: Counts the tokens of each line.

    Raises:
        RecordError: A line has no session; the chunks before it are out.
    """
    encoder = ChunkEncoder(policy, counter.name, Path(file).name, 0)
    sessions = PartitionSessions(policy)
    for offset, (session, value) in enumerate(_records(lines, file, reader)):
        text, carried, size = read_value(value)
        (tokens,) = count_tokens(counter, [text], policy.max_tokens)
        record = Record(session, value, tokens, offset, None, size, carried)
        for closed in sessions.push(record):
            yield encoder.encode(closed)
    for closed in sessions.finish():
        yield encoder.encode(closed)


def _records(
    lines: Iterable[tuple[int, bytes]], file: str, reader: Format
) -> Iterator[tuple[str, bytes]]:
    for number, line in lines:
        try:
            for session, value, _ in reader.read(line):
                if session is None:
                    raise NoSessionError(NAMELESS)
                yield session, value
        except RecordError as error:
            msg = f"{file}:{number + 1}: {error}"
            raise type(error)(msg) from error
