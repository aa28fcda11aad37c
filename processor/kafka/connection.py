"""How to reach the brokers: settings -> client arguments, and connection faults -> our errors."""

import ssl
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.conn import collect_hosts
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    StaleMetadata,
)
from aiokafka.helpers import create_ssl_context

from processor.core.errors import ConfigError, ProcessorError, UnreachableError
from processor.kafka import login
from processor.kafka.rights import Operation, right_errors
from processor.kafka.tokens import token_provider
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
    if settings.security_protocol.startswith("SASL"):
        arguments["sasl_mechanism"] = settings.sasl_mechanism
        if settings.sasl_mechanism == "OAUTHBEARER":
            arguments["sasl_oauth_token_provider"] = token_provider(settings)
        elif settings.sasl_password is not None:
            arguments["sasl_plain_username"] = settings.sasl_username
            arguments["sasl_plain_password"] = settings.sasl_password.get_secret_value()
    login.install()
    return arguments


@contextmanager
def broker_errors(settings: Settings, operation: Operation = "Read") -> Iterator[None]:
    """Turn aiokafka's ways of saying that it can't get at something into errors of ours.

    Args:
        settings: How to connect.
        operation: What is done to topics meanwhile; a broker that refuses doesn't tell.

    Raises:
        ConfigError: A broker refuses our login or lacks a certificate that we trust, or a right
            is missing.
        UnreachableError: None answers.
    """
    with login.failed_connections() as failures:
        try:
            with right_errors(settings, operation):
                yield
        except NO_ANSWER as error:
            raise _no_answer(settings, error, failures) from error


@asynccontextmanager
async def admin_client(
    settings: Settings, operation: Operation = "Read"
) -> AsyncIterator[AIOKafkaAdminClient]:
    """Yield a started admin client; errors are those of ``broker_errors``."""
    admin = AIOKafkaAdminClient(**client_settings(settings))
    with broker_errors(settings, operation):
        try:
            await admin.start()
            yield admin
        finally:
            await admin.close()


def _no_answer(
    settings: Settings, error: Exception, failures: Mapping[str, BaseException]
) -> ProcessorError:
    for address, failure in failures.items():
        if fault := login.reason(settings, address, failure):
            return fault
    reason = str(error) or type(error).__name__
    return UnreachableError(
        f"no answer from {settings.bootstrap_servers} over {settings.security_protocol}"
        f" ({reason}); check that the broker runs, KAFKA_BOOTSTRAP_SERVERS and"
        f" KAFKA_SECURITY_PROTOCOL{_named_elsewhere(settings, failures)}"
    )


def _named_elsewhere(settings: Settings, failures: Iterable[str]) -> str:
    """Say which of the addresses that failed are not ours, but what brokers call themselves."""
    ours = {f"{host}:{port}" for host, port, _ in collect_hosts(settings.bootstrap_servers)}
    if theirs := ", ".join(sorted(set(failures) - ours)):
        return f"; brokers call themselves {theirs}: mend advertised.listeners, or the way there"
    return ""


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
