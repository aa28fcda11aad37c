"""``processor produce``: lines of files into the records topic."""

import asyncio
import logging
import re
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

from processor.cli.options import KAFKA, format_option, session_options, settings_options
from processor.cli.progress import progress_bar
from processor.feeding.choice import STDIN, Choice, SessionRule
from processor.feeding.following import Following
from processor.feeding.sending import Sender, Summary, kafka_producer, send_files
from processor.kafka.ledger import Ledger
from processor.settings import Settings
from processor.sources.finding import find_transcripts

_log = logging.getLogger(__name__)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|DIR...")
@click.option("--end", is_flag=True, help="End each session after its file.")
@format_option
@click.option(
    "--follow",
    "is_followed",
    is_flag=True,
    help="Go on with what is appended, and with new files, until SIGINT or SIGTERM.",
)
@click.option(
    "--name",
    metavar="NAME",
    help="With --follow: whose positions these are; two of one name stop the older one."
    "  [default: the host's name]",
)
@session_options
@settings_options(*KAFKA, "records_topic", "positions_topic", "compression", "header_fields")
def produce(  # noqa: PLR0913 - click passes each option by itself
    settings: Settings,
    rule: SessionRule,
    files: tuple[str, ...],
    format_name: str | None,
    name: str | None,
    *,
    end: bool,
    is_followed: bool,
) -> None:
    """Send each line of each FILE to the records topic, as it is; - reads standard input.

    A DIR stands for every *.jsonl below it. The key is the line's session, as the format tells it,
    and the file's name without extension where nothing does. An empty line is a record too: nothing
    is left out. Sending a file a second time sends every line again; with --follow each line is
    sent once, however often the follower is killed and started again: how far each file was sent is
    kept in the positions topic, in the transaction of its lines.
    """
    if is_followed:
        if end or STDIN in files:
            msg = "--follow goes with neither --end nor standard input"
            raise click.UsageError(msg)
        _follow(settings, files, Choice(rule, format_name, settings.header_paths), name)
        return
    if name is not None:
        msg = "--name goes with --follow"
        raise click.UsageError(msg)
    if STDIN in files and rule == SessionRule() and format_name is None:
        msg = "standard input has no name: use --session NAME, --session-field PATH or --format"
        raise click.UsageError(msg)
    names = [name for file in files for name in transcripts_at(file)]
    choice = Choice(rule, format_name, settings.header_paths, is_session_required=True)
    with progress_bar(
        "sending", sum(Path(it).stat().st_size for it in names if it != STDIN)
    ) as bar:
        summary = asyncio.run(_produce(settings, names, choice, advance=bar.update, end=end))
    click.echo(_sentence(summary, settings.records_topic))


def _follow(settings: Settings, roots: Sequence[str], choice: Choice, name: str | None) -> None:
    name = socket.gethostname() if name is None else name
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,200}", name):
        msg = f"the name {name!r} may hold letters, digits, '.', '_' and '-' only; see --name"
        raise click.UsageError(msg)
    ledger = Ledger(settings, name, settings.records_topic)
    following = Following(ledger, settings.records_topic, roots, choice)
    asyncio.run(_follow_until_stopped(following))


async def _follow_until_stopped(following: Following) -> None:
    """Run until SIGINT or SIGTERM."""
    running = asyncio.ensure_future(following.run())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        _log.info("stopped", extra={"records": following.record_count})


def transcripts_at(file: str) -> Iterable[str]:
    """Return the paths of a folder's transcripts; a file's, or standard input, as it is.

    Raises:
        FileError: There are none, or what is there can't be read.
    """
    if file == STDIN or Path(file).is_file():
        return (file,)
    if not Path(file).is_dir():
        raise click.FileError(file, hint="not a file nor a folder; - reads standard input")
    names = [it.path for it in find_transcripts(file, _raise)]
    if not names:
        raise click.FileError(file, hint="no *.jsonl in this folder or below")
    return names


def _raise(error: OSError) -> None:
    raise click.FileError(str(error.filename), hint=error.strerror) from error


async def _produce(
    settings: Settings,
    files: Sequence[str],
    choice: Choice,
    *,
    advance: Callable[[int], None],
    end: bool,
) -> Summary:
    async with kafka_producer(settings) as producer:
        sender = Sender(producer, settings.records_topic)
        return await send_files(sender, files, choice, advance=advance, end=end)


def _sentence(summary: Summary, topic: str) -> str:
    parts = [f"sent {summary.record_count:,} records in {len(summary.sessions):,} sessions"]
    parts.append(f"to {topic}")
    if summary.end_count:
        parts.append(f"and {summary.end_count:,} ends of session")
    return " ".join(parts)
