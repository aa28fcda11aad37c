"""``processor doctor``: what is wrong with a deployment, and what to do about it."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import click

from processor.cli.config_checks import check_settings
from processor.cli.options import LOG, output_option, settings_options
from processor.clock import SystemClock
from processor.doctor.examine import examine
from processor.doctor.finding import Finding, Level
from processor.settings import Settings, flag_names

_SAMPLE: Final = 10_000
_INDENT: Final = " " * 8
#: Of the column that says where; one that is wider goes on to the right.
_WIDTH: Final = 32


@click.command()
@click.option(
    "--sample",
    "sample_size",
    type=click.IntRange(min=0),
    default=_SAMPLE,
    show_default=True,
    help="Newest records to read, for keys and clocks; 0: none.",
)
@output_option
@settings_options(*(it for it in flag_names() if it not in LOG))
def doctor(settings: Settings, sample_size: int, output: str) -> int:
    """Look at brokers, topics, rights, group and log; exit 1 if a promise can't be kept.

    Run it with a worker's settings and login. It writes nothing, creates nothing and joins no
    group; a running worker does no harm. Exit 69 if no broker answers, 78 if the settings are
    wrong.
    """
    check_settings(settings)
    findings = asyncio.run(examine(settings, sample_size, SystemClock()))
    is_well = all(it.level is not Level.BREAKS for it in findings)
    if output == "json":
        rows = [it._asdict() for it in findings]
        click.echo(json.dumps({"ok": is_well, "findings": rows}, ensure_ascii=False))
    else:
        click.echo("\n".join([*table(findings), summary(findings)]))
    return 0 if is_well else 1


def table(findings: Sequence[Finding]) -> list[str]:
    """Return findings as lines, each with its remedy below it."""
    width = min(max((len(it.where) for it in findings), default=0), _WIDTH)
    lines = []
    for level, where, what, remedy in findings:
        lines.append(f"{level:<6}  {where:<{width}}  {what}")
        lines += [_INDENT + line for line in remedy.splitlines()]
    return lines


def summary(findings: Iterable[Finding]) -> str:
    """Return how many findings there are of each level, as a line."""
    counts = Counter(it.level for it in findings)
    return ", ".join(f"{level}: {counts[level]}" for level in Level)
