"""``processor dead-letters``: what was set aside, and how it goes back."""

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import click

from processor.cli.letter_choice import choice_options
from processor.cli.letter_view import document_of, group_text, row_of, row_text, shown
from processor.cli.options import KAFKA, output_option, settings_options
from processor.cli.redrive import redrive
from processor.kafka.letters import read_letter, read_letters, read_redriven
from processor.protocol.letters import Choice
from processor.settings import Settings

#: As ``list`` prints it, with or without the topic; or partition and offset.
_PLACE: Final = re.compile(r"(?:[\w.-]+\[(?=\d+\]))?(\d+)(?:\]?@| )(\d+)")
_GROUPED: Final = ("reason", "origin", "redriven")


@click.group("dead-letters")
def dead_letters() -> None:
    """List and show records without a session, and send them to the records topic again."""


dead_letters.add_command(redrive)


@dead_letters.command("list")
@choice_options
@click.option("--count", "is_counted", is_flag=True, help="Count them by reason and origin.")
@output_option
@settings_options(*KAFKA, "dead_letter_topic", "positions_topic")
def list_letters(settings: Settings, choice: Choice, output: str, *, is_counted: bool) -> None:
    """Print one line for each dead letter, oldest first in each partition; no content."""
    asyncio.run(_list(settings, choice, output, is_counted=is_counted))


@dead_letters.command()
@click.argument("place", nargs=-1, required=True, metavar="PLACE")
@click.option("--raw", "is_raw", is_flag=True, help="Print the value's bytes alone.")
@output_option
@settings_options(*KAFKA, "dead_letter_topic")
def show(settings: Settings, place: tuple[str, ...], output: str, *, is_raw: bool) -> None:
    """Print one dead letter with its key, headers and content.

    PLACE is as the list prints it, such as 3@17, or partition and offset, 3 17.
    """
    found = _PLACE.fullmatch(" ".join(place))
    if found is None:
        msg = f"{' '.join(place)!r} is no place; give partition and offset, such as 3@17"
        raise click.UsageError(msg)
    letter = asyncio.run(read_letter(settings, int(found[1]), int(found[2])))
    if letter is None:
        msg = f"no dead letter at {settings.dead_letter_topic}[{found[1]}]@{found[2]}"
        raise click.ClickException(msg)
    if is_raw:
        sys.stdout.buffer.write(letter.record.value or b"")
    else:
        click.echo(json.dumps(document_of(letter)) if output == "json" else shown(letter))


async def _list(settings: Settings, choice: Choice, output: str, *, is_counted: bool) -> None:
    groups: Counter[tuple[Any, ...]] = Counter()
    async with aclosing(_rows(settings, choice)) as rows:
        async for row in rows:
            if is_counted:
                groups[row["reason"], row["origin"].rpartition("@")[0], row["redriven"]] += 1
            else:
                click.echo(json.dumps(row) if output == "json" else row_text(row))
    for group, count in sorted(groups.items()):
        counted = dict(zip(_GROUPED, group, strict=True)) | {"count": count}
        click.echo(json.dumps(counted) if output == "json" else group_text(counted))


async def _rows(settings: Settings, choice: Choice) -> AsyncGenerator[dict[str, Any], None]:
    redriven, count = await read_redriven(settings), 0
    async with aclosing(read_letters(settings)) as batches:
        async for letters in batches:
            for letter in filter(choice.takes, letters):
                if count == choice.most:
                    return
                count += 1
                yield row_of(letter, is_redriven=letter in redriven.get(letter.partition, ()))
