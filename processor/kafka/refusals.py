"""Why the group or the log turns us away: aiokafka's errors into ours, with what to do; no I/O."""

from collections.abc import Mapping
from typing import Final

from aiokafka.errors import (
    InconsistentGroupProtocolError,
    InvalidSessionTimeoutError,
    KafkaError,
    OffsetOutOfRangeError,
)

from processor.core.errors import ConfigError, ProcessorError, StateError, UnreachableError
from processor.kafka.rights import missing_message, refused_rights
from processor.settings import Settings

#: Why the group will never take us, and what to do.
_REFUSALS: Final[Mapping[type[KafkaError], str]] = {
    InvalidSessionTimeoutError: (
        "PROCESSOR_SESSION_TIMEOUT_S={0.session_timeout_s:g} lies outside what the broker allows; "
        "choose one between its group.min.session.timeout.ms and group.max.session.timeout.ms"
    ),
    InconsistentGroupProtocolError: (
        "another application uses this group; choose another PROCESSOR_APP_ID"
    ),
}


def why_refused(settings: Settings, group: str, error: KafkaError) -> ConfigError | None:
    """Return why a group will never take us; ``None`` where another try may do."""
    if rights := refused_rights(settings, error, "Read"):
        return ConfigError(missing_message(settings, rights))
    remedy = _REFUSALS.get(type(error))
    if remedy is None:
        return None
    return ConfigError(f"group {group}: {error!r}; {remedy.format(settings)}")


def why_not_fetched(settings: Settings, topic: str, error: KafkaError) -> ProcessorError:
    """Return why nothing more can be fetched of a topic."""
    if isinstance(error, OffsetOutOfRangeError):
        message = (
            f"{topic}: {error!r}; retention has eaten records that were not read yet, or the "
            "topic was created again. Start again for what to do"
        )
        return StateError(message)
    if rights := refused_rights(settings, error, "Read"):
        return ConfigError(missing_message(settings, rights))
    return UnreachableError(f"{topic}: {error!r}")
