"""``processor dead-letters redrive``: letters become records again, each once."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import click

from processor.cli.letter_choice import choice_options
from processor.cli.options import KAFKA, output_option, session_name, settings_options
from processor.cli.progress import progress_bar
from processor.core.errors import NoSessionError
from processor.formats.fields import session_in
from processor.formats.json_line import JsonLine
from processor.kafka.connection import client_settings
from processor.kafka.partitioner import crc32
from processor.kafka.reading import message_count
from processor.kafka.redriving import Plan, Summary, send_again, would_send
from processor.kafka.topics import describe_topic
from processor.protocol.letters import Choice, Letter
from processor.settings import Settings


class _How(NamedTuple):
    """What a person has asked for beside."""

    partitioner: str
    is_dry_run: bool
    is_topic_new: bool


@click.command()
@click.option(
    "--session", metavar="NAME", callback=session_name, help="Session to give all of them."
)
@click.option(
    "--session-field",
    metavar="PATH",
    help="Where each one's JSON holds its session, such as metadata.session_id.",
)
@choice_options
@click.option(
    "--partitioner",
    type=click.Choice(["murmur2", "crc32"]),
    default="murmur2",
    show_default=True,
    help="How producers choose a session's partition: as Java's clients, or as librdkafka's.",
)
@click.option("--dry-run", "is_dry_run", is_flag=True, help="Say what would be done.")
@click.option(
    "--forget",
    "is_topic_new",
    is_flag=True,
    help="Take none for redriven, the dead-letter topic having been deleted and made anew.",
)
@output_option
@settings_options(*KAFKA, "records_topic", "dead_letter_topic", "positions_topic", "compression")
def redrive(
    settings: Settings,
    choice: Choice,
    /,
    session: str | None,
    session_field: str | None,
    output: str,
    **how: Any,  # noqa: ANN401 - as click gives them
) -> int:
    """Send dead letters to the records topic again, each once, with a session.

    A letter becomes a record at its session's end: the order that it once had is not restored.
    It keeps value and headers, and has two more: processor-origin, where it first stood, and
    processor-replay-count. Letters stay in their topic; which were redriven is remembered in
    the positions topic, in the same transaction, so a run may be killed and begun again. Exits
    1 if a letter that was chosen has no session, or was sent again five times.
    """
    if (session is None) == (session_field is None):
        msg = "give the letters a session: either --session NAME or --session-field PATH"
        raise click.UsageError(msg)
    choice = replace(choice, origin_topic=settings.records_topic)
    asked = _How(**how)
    rule = _session_rule(session, session_field)
    plan = Plan(choice, rule, is_topic_new=asked.is_topic_new)
    summary = asyncio.run(_redrive(settings, plan, asked))
    row = _document(summary, is_dry_run=asked.is_dry_run)
    click.echo(json.dumps(row) if output == "json" else _sentence(row, settings))
    if summary.left_because is not None:
        click.echo(f"first of those left: {summary.left_because}", err=True)
    return 1 if summary.left_count else 0


async def _redrive(settings: Settings, plan: Plan, how: _How) -> Summary:
    letter_topic = settings.dead_letter_topic
    # Asked first: a reader's own question would make the broker create a topic that is missing.
    letters = await describe_topic(settings, letter_topic)
    records = await describe_topic(settings, settings.records_topic, "Write")
    if how.partitioner == "crc32":
        plan = replace(plan, partition_of=crc32(records.partition_count))
    length = await message_count(client_settings(settings), letter_topic, letters.partition_count)
    run = would_send if how.is_dry_run else send_again
    with progress_bar("redriving", length) as bar:
        return await run(settings, plan, bar.update)


def _session_rule(session: str | None, field: str | None) -> Callable[[Letter], str]:
    def rule(letter: Letter) -> str:
        if session is not None:
            return session
        if letter.record.value is None:
            msg = f"{letter}: an end of session says nothing of its session; use --session NAME"
            raise NoSessionError(msg)
        found = session_in([JsonLine(letter.record.value).at(field or "")])
        if found is None:
            msg = f"{letter}: no session at {field!r}; use --session NAME, or leave it out"
            raise NoSessionError(msg)
        return found

    return rule


def _document(summary: Summary, *, is_dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": is_dry_run,
        "redriven": summary.sent_count,
        "sessions": len(summary.sessions),
        "redriven_before": summary.before_count,
        "left": summary.left_count,
    }


def _sentence(row: Mapping[str, Any], settings: Settings) -> str:
    verb = "would redrive" if row["dry_run"] else "redrove"
    counts = f"{row['redriven']:,} dead letters in {row['sessions']:,} sessions"
    parts = [f"{verb} {counts} to {settings.records_topic}"]
    if row["redriven_before"]:
        parts.append(f"{row['redriven_before']:,} were redriven before")
    if row["left"]:
        parts.append(f"{row['left']:,} left where they are")
    return "; ".join(parts)
