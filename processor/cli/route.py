"""``processor route``: key telemetry by session until told to stop."""

import click

from processor.cli import options
from processor.cli.running import run_app
from processor.route_app import create_route_app
from processor.settings import Settings

_SETTINGS = (
    *options.KAFKA,
    "group_instance_id",
    "auto_offset_reset",
    "app_id",
    *options.ROUTE,
    "records_topic",
    "dead_letter_topic",
    "commit_interval_s",
    "compression",
    "session_timeout_s",
    "stuck_after_s",
    "http_host",
    "http_port",
    "create_topics",
)


@click.command()
@options.settings_options(*_SETTINGS)
def route(settings: Settings) -> None:
    """Consume telemetry that is not keyed by session, produce records that are, exactly once.

    What belongs to no session goes to the dead letters. SIGTERM commits what is staged, leaves
    the group and exits 0 within 25 s.
    """
    run_app(create_route_app(settings))
