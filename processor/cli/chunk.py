"""``processor chunk``: a file into chunks, without a broker."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

import click

from processor.cli.options import session_options, settings_options
from processor.core.policy import ChunkPolicy
from processor.core.records import Record
from processor.core.sessions import PartitionSessions
from processor.counters import TokenCounter, count_tokens, counter_named
from processor.settings import Settings
from processor.sources.jsonl import SessionRule, read_lines
from processor.wire import ChunkEncoder, read_value

STDIN: Final = "-"


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True))
@session_options
@settings_options("max_tokens", "token_counter")
def chunk(settings: Settings, rule: SessionRule, file: str) -> None:
    """Cut the lines of FILE into chunks, one JSON line each; - reads standard input.

    Every line is a record, the empty ones too, and ends at the line feed alone. Chunks are those
    that a worker makes of the same lines: partition 0, the line's number from 0 for the offset.
    """
    if file == STDIN and rule == SessionRule():
        msg = "standard input has no name: use --session NAME or --session-field PATH"
        raise click.UsageError(msg)
    # Lines of a file carry no time, so nothing closes by time.
    policy = ChunkPolicy(
        max_tokens=settings.max_tokens,
        max_chunk_bytes=settings.max_chunk_bytes,
        max_chunk_records=settings.max_chunk_records,
    )
    counter = counter_named(settings.token_counter)
    output = click.get_binary_stream("stdout")
    with click.open_file(file, "rb") as stream:
        for line in chunk_lines(read_lines(cast("BinaryIO", stream)), file, rule, policy, counter):
            output.write(line + b"\n")
            # A reader of a pipe wants a chunk when it closes.
            output.flush()


def chunk_lines(
    lines: Iterable[tuple[int, bytes]],
    file: str,
    rule: SessionRule,
    policy: ChunkPolicy,
    counter: TokenCounter,
) -> Iterator[bytes]:
    """Yield the encoded chunks of numbered lines; only open chunks are in memory.

    Args:
        lines: Numbers from 0, and lines without their line feed.
        file: Where they come from; its name stands for the topic.
        rule: Names the session of each line.
        policy: When a chunk closes.
        counter: Counts the tokens of each line.

    Raises:
        RecordError: A line has no session; the chunks before it are out.
    """
    encoder = ChunkEncoder(policy, counter.name, Path(file).name, 0)
    sessions = PartitionSessions(policy)
    for number, line in lines:
        session = rule.session_for(line, file, number)
        text, carried, size = read_value(line)
        (tokens,) = count_tokens(counter, [text], policy.max_tokens)
        record = Record(session, line, tokens, number, None, size, carried)
        for closed in sessions.push(record):
            yield encoder.encode(closed)
    for closed in sessions.finish():
        yield encoder.encode(closed)
