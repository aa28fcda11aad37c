"""What aiokafka keeps to itself when a connection fails, and why it failed, in words.

Its clients log why they could not connect, and raise that they could not. So each attempt is heard
here: whoever opened a client can ask what its attempts failed with. Its OAUTHBEARER login takes the
broker's refusal of a token for success, and the next request then fails without a reason; RFC 7628
has the client answer, whereupon the broker says why.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import aiokafka.client
import aiokafka.conn
from aiokafka.conn import OAuthAuthenticator
from aiokafka.errors import (
    IllegalSaslStateError,
    KafkaError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from processor.core.errors import ConfigError, ProcessorError, UnreachableError
from processor.kafka.tokens import TokenError
from processor.settings import Settings

_connect: Final = aiokafka.conn.create_conn
#: RFC 7628, section 3.2.3: the answer to a refusal.
_HEARD: Final = b"\x01"


_failures: ContextVar[dict[str, BaseException] | None] = ContextVar("failures", default=None)


@contextmanager
def failed_connections() -> Iterator[dict[str, BaseException]]:
    """Yield what the last attempt to connect failed with, for each address where it did."""
    heard: dict[str, BaseException] = {}
    before = _failures.set(heard)
    try:
        yield heard
    finally:
        _failures.reset(before)


def install() -> None:
    """Have every connection that aiokafka opens from now on heard, and tokens' refusals too."""
    aiokafka.client.create_conn = _heard_connect
    aiokafka.conn.OAuthAuthenticator = TokenLogin


async def _heard_connect(host: str, port: int, **arguments: Any) -> Any:  # noqa: ANN401
    heard, address = _failures.get(), f"{host}:{port}"
    try:
        connection = await _connect(host, port, **arguments)
    except (OSError, KafkaError, TimeoutError) as error:
        if heard is not None:
            heard[address] = error
        raise
    if heard is not None:
        heard.pop(address, None)
    return connection


class TokenLogin(OAuthAuthenticator):  # type: ignore[misc]  # aiokafka is untyped
    """aiokafka's OAUTHBEARER login, which answers a refusal so that the broker says why."""

    async def step(self, payload: bytes | None) -> tuple[bytes, bool] | None:
        """Return what to send next, ``None`` at the end."""
        if payload:
            return _HEARD, True
        step: tuple[bytes, bool] | None = await super().step(payload)
        return step


def reason(settings: Settings, address: str, failure: BaseException) -> ProcessorError | None:
    """Return what a person has to do about a failure, ``None`` if it doesn't tell."""
    where = f"{address} over {settings.security_protocol}"
    for error in _causes(failure):
        if isinstance(error, TokenError):
            return _token_fault(where, error)
        if isinstance(error, SaslAuthenticationFailed):
            return ConfigError(f"{where}: the broker refuses our login: {_login(settings)}")
        if isinstance(error, UnsupportedSaslMechanismError | IllegalSaslStateError):
            message = (
                f"{where}: the broker takes no KAFKA_SASL_MECHANISM={settings.sasl_mechanism} "
                f"there; choose another mechanism or another listener ({error})"
            )
            return ConfigError(message)
        if isinstance(error, ssl.SSLCertVerificationError):
            return ConfigError(f"{where}: {_certificate_fault(settings, error)}")
        if isinstance(error, ssl.SSLError):
            return _tls_fault(settings, where, error)
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _token_fault(where: str, error: TokenError) -> ProcessorError:
    kind = ConfigError if isinstance(error.__cause__, ConfigError) else UnreachableError
    return kind(f"{where}: {error.__cause__}")


def _login(settings: Settings) -> str:
    if settings.sasl_mechanism != "OAUTHBEARER":
        return (
            f"check KAFKA_SASL_USERNAME={settings.sasl_username}, its password, and that the "
            f"broker knows both for KAFKA_SASL_MECHANISM={settings.sasl_mechanism}"
        )
    return (
        "check that the token is of the issuer, audience and scope that the broker wants and not "
        "expired, and the clocks"
    )


def _certificate_fault(settings: Settings, error: ssl.SSLCertVerificationError) -> str:
    # X509_V_ERR_* of OpenSSL, which Python has no names for.
    expired, not_yet_valid, hostname, address = 10, 9, 62, 64
    trust = settings.ssl_ca_location or "the system's authorities"
    if error.verify_code in (expired, not_yet_valid):
        remedy = "have the broker's certificate renewed, and check the clocks"
    elif error.verify_code in (hostname, address):
        remedy = (
            "connect by a name that the certificate has: KAFKA_BOOTSTRAP_SERVERS, and the "
            "broker's advertised.listeners"
        )
    else:
        remedy = f"name its authority in KAFKA_SSL_CA_LOCATION (now {trust})"
    return f"the broker's certificate isn't valid here: {error.verify_message}; {remedy}"


def _tls_fault(settings: Settings, where: str, error: ssl.SSLError) -> ProcessorError:
    what = (error.reason or str(error)).lower().replace("_", " ")
    if "alert" in what and ("certificate" in what or "unknown ca" in what):
        own = settings.ssl_certificate_location or "none given"
        message = (
            f"{where}: the broker refuses our certificate ({what}); give one that it trusts and "
            f"that is not expired: KAFKA_SSL_CERTIFICATE_LOCATION (now {own}) and "
            "KAFKA_SSL_KEY_LOCATION"
        )
    else:
        message = (
            f"{where}: no TLS ({what}); check that the port of KAFKA_BOOTSTRAP_SERVERS is one of a "
            "listener with TLS"
        )
    return ConfigError(message)
