"""How to reach the brokers: settings -> client arguments, and connection faults -> our errors."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from aiokafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    StaleMetadata,
)
from aiokafka.helpers import create_ssl_context

from processor.core.errors import ConfigError, UnreachableError
from processor.settings import Settings

# What aiokafka raises when nobody answers. OSError is not among them: aiokafka translates it
# itself, and a caller's broken pipe must not look like a broker.
NO_ANSWER: Final = (
    KafkaConnectionError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    StaleMetadata,
    TimeoutError,
    # aiokafka asserts that it knows a broker, but one that comes back may name none at first.
    AssertionError,
)


def client_settings(settings: Settings) -> dict[str, Any]:
    """Return the arguments that every aiokafka client takes to connect and to log in.

    Raises:
        ConfigError: A certificate or key can't be read.
    """
    arguments: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers,
        "security_protocol": settings.security_protocol,
    }
    if settings.security_protocol in {"SSL", "SASL_SSL"}:
        arguments["ssl_context"] = _ssl_context(settings)
    if settings.security_protocol.startswith("SASL") and settings.sasl_password is not None:
        arguments["sasl_mechanism"] = settings.sasl_mechanism
        arguments["sasl_plain_username"] = settings.sasl_username
        arguments["sasl_plain_password"] = settings.sasl_password.get_secret_value()
    return arguments


@contextmanager
def broker_errors(settings: Settings) -> Iterator[None]:
    """Turn aiokafka's ways of saying that nobody answered into ``UnreachableError``."""
    try:
        yield
    except NO_ANSWER as error:
        reason = str(error) or type(error).__name__
        msg = (
            f"no answer from {settings.bootstrap_servers} over {settings.security_protocol}"
            f" ({reason}); check that the broker runs, KAFKA_BOOTSTRAP_SERVERS,"
            " KAFKA_SECURITY_PROTOCOL and, with SASL, the user and password"
        )
        raise UnreachableError(msg) from error


def _ssl_context(settings: Settings) -> ssl.SSLContext:
    try:
        context: ssl.SSLContext = create_ssl_context(
            cafile=settings.ssl_ca_location,
            certfile=settings.ssl_certificate_location,
            keyfile=settings.ssl_key_location,
            # An encrypted key would otherwise make OpenSSL ask at a terminal that isn't there.
            password="",
        )
    except OSError as error:  # ssl.SSLError is one
        msg = (
            "can't use the PEM files (keys unencrypted) of KAFKA_SSL_CA_LOCATION,"
            " KAFKA_SSL_CERTIFICATE_LOCATION and"
            f" KAFKA_SSL_KEY_LOCATION ({settings.ssl_ca_location},"
            f" {settings.ssl_certificate_location}, {settings.ssl_key_location}): {error}"
        )
        raise ConfigError(msg) from error
    return context
