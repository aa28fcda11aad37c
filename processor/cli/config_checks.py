"""What ``processor config check`` looks at: all that could keep a worker from starting."""

import asyncio
from collections.abc import Callable

from processor.app import chunker_config
from processor.core.errors import ConfigError
from processor.kafka.connection import client_settings
from processor.kafka.flow import chunking
from processor.kafka.granted import check_rights
from processor.kafka.rights import flow_rights
from processor.kafka.topics import check_topics
from processor.settings import Settings, require_app_id


def check_settings(settings: Settings) -> None:
    """Check what can be checked without a broker.

    Raises:
        ConfigError: The message has all that is wrong.
    """
    _raise_all(settings, require_app_id, chunker_config, client_settings)


def check_broker(settings: Settings) -> None:
    """Log in, ask for a worker's rights, and check the topics; create nothing.

    Raises:
        ConfigError: The message has all rights that are missing, or all that is wrong with the
            topics, of which a right may hide some.
        UnreachableError: No broker answers.
    """
    asyncio.run(_check_broker(settings))


def _raise_all(settings: Settings, *checks: Callable[[Settings], object]) -> None:
    """Make all checks, and raise what they find as one error."""
    found: dict[str, None] = {}  # a set that keeps its order
    for check_it in checks:
        try:
            check_it(settings)
        except ConfigError as error:
            found[str(error)] = None
    if found:
        raise ConfigError("\n".join(found))


async def _check_broker(settings: Settings) -> None:
    await check_rights(settings, flow_rights(chunking(settings)))
    await check_topics(settings)
