"""``processor rechunk``: what another budget, counter or idle time would do, as a diff."""

import asyncio
import functools
import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Concatenate, Final, ParamSpec

import click
from aiokafka import TopicPartition

from processor.cli.chunk import cut_records, policy_of_lines, records_in_file
from processor.cli.options import (
    KAFKA,
    format_option,
    output_option,
    session_options,
    settings_options,
)
from processor.cli.rechunk_view import change_row, change_text, summary_row, summary_text
from processor.cli.session_log import seen_at
from processor.counters import counter_named
from processor.feeding.choice import SessionRule
from processor.formats.fields import EVENT_TIME
from processor.formats.format import Headers
from processor.kafka.connection import client_settings
from processor.kafka.reading import partition_reader, read_to_end
from processor.kafka.topics import describe_topic
from processor.proof.diff import Change
from processor.proof.rechunk import Cut, Other, Rechunking
from processor.settings import Settings

_SECONDS: Final = click.FloatRange(min=0)
_OPTIONS: Final = (
    click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Another budget."),
    click.option("--token-counter", metavar="TEXT", help="Another counter."),
    click.option("--idle-s", type=_SECONDS, metavar="SECONDS", help="Another idle time; 0 never."),
    click.option("--max-age-s", type=_SECONDS, metavar="SECONDS", help="Another age; 0 never."),
)
P = ParamSpec("P")


def other_options(verb: Callable[Concatenate[Other, P], None]) -> Callable[P, None]:
    """Give a verb the choice of another rule, its first argument."""

    @functools.wraps(verb)
    def with_other(*args: P.args, **kwargs: P.kwargs) -> None:
        names = ("max_tokens", "token_counter", "idle_s", "max_age_s")
        asked: Any = {name: kwargs.pop(name) for name in names}
        if all(it is None for it in asked.values()):
            flags = ", ".join(f"--{name.replace('_', '-')}" for name in names)
            msg = f"say what should be other, by one or more of {flags}"
            raise click.UsageError(msg)
        counter = asked.pop("token_counter")
        verb(Other(counter=counter and counter_named(counter), **asked), *args, **kwargs)

    command: Callable[P, None] = with_other
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument(
    "file", type=click.Path(exists=True, dir_okay=False, allow_dash=True), required=False
)
@other_options
@session_options
@format_option
@output_option
@settings_options(*KAFKA, "chunks_topic")
def rechunk(  # noqa: PLR0913, PLR0917 - click passes each option
    settings: Settings,
    rule: SessionRule,
    other: Other,
    /,
    file: str | None,
    format_name: str | None,
    output: str,
) -> None:
    """Show how chunks would differ by another rule: each that would go or come, and the sums.

    Without FILE, the chunks of the chunks topic, --session for those of one session. With FILE,
    the chunks of its lines as the settings have it now; their times are those that the format
    finds in them. Chunks are those of the worker's own core. Without --idle-s and --max-age-s
    what closed by time, the clock's doing too, is taken as given; with one of them it is
    computed anew from the records' timestamps.
    """
    if file is None and (rule.field is not None or format_name is not None):
        msg = "--session-field and --format are for a FILE"
        raise click.UsageError(msg)
    printer = _Printer(other, output)
    if file is None:
        asyncio.run(_log(settings, rule.name, printer))
    else:
        _file(settings, file, rule, format_name, printer)
    printer.end()


class _Printer:
    """Prints a diff as it comes."""

    def __init__(self, other: Other, output: str) -> None:
        self._other = other
        self._is_json = output == "json"
        self.rechunking = Rechunking(other)

    def take(self, cut: Cut, partition: int) -> None:
        """Print what a chunk decides."""
        self._print(self.rechunking.take(cut), partition)

    def finish(self, partition: int) -> None:
        """Print what the end of a partition decides."""
        self._print(self.rechunking.finish(), partition)

    def end(self) -> None:
        """Print the sums."""
        row = summary_row(self.rechunking.diff, self._other)
        click.echo(json.dumps(row) if self._is_json else summary_text(row))

    def _print(self, changes: Iterable[Change], partition: int) -> None:
        for change in changes:
            row = change_row(change, partition)
            click.echo(json.dumps(row) if self._is_json else change_text(row))


async def _log(settings: Settings, session: str | None, printer: _Printer) -> None:
    client, topic = client_settings(settings), settings.chunks_topic
    key = None if session is None else session.encode()
    count = (await describe_topic(settings, topic)).partition_count
    for number in range(count):
        place = TopicPartition(topic, number)
        async with partition_reader(client, place) as reader:
            async for messages in read_to_end(reader, place):
                for message in messages:
                    if key is None or message.key == key:
                        printer.take(Cut.of_seen(seen_at(message, topic, number)), number)
        printer.finish(number)


def _file(
    settings: Settings, file: str, rule: SessionRule, format_name: str | None, printer: _Printer
) -> None:
    policy = policy_of_lines(settings)
    counter = counter_named(settings.token_counter)
    with records_in_file(file, rule, format_name) as records:
        for chunk in cut_records(timed(records), policy, counter):
            printer.take(Cut.of_chunk(chunk, policy, counter.name), 0)
    printer.finish(0)


def timed(
    records: Iterable[tuple[str, bytes, Headers]],
) -> Iterator[tuple[str, bytes, int | None]]:
    """Yield records with the time that their headers tell, in Unix milliseconds, for these."""
    for session, value, headers in records:
        time = dict(headers).get(EVENT_TIME)
        yield session, value, None if time is None else _time_ms(time.decode())


def _time_ms(text: str) -> int | None:
    try:
        return round(datetime.fromisoformat(text.upper()).timestamp() * 1000)
    except ValueError:  # RFC 3339 allows a second 60 and a year 0
        return None
