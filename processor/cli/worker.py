"""``processor worker``: chunk a topic until told to stop."""

import click

from processor.app import create_app
from processor.cli import options
from processor.cli.running import run_app
from processor.settings import Settings, flag_names


@click.command()
@options.settings_options(*(it for it in flag_names() if it not in (*options.LOG, *options.ROUTE)))
def worker(settings: Settings) -> None:
    """Consume records, produce chunks, exactly once.

    SIGTERM commits what is staged, leaves the group and exits 0 within 25 s; open chunks stay
    open, in the log, for whoever takes over.
    """
    run_app(create_app(settings))
