import asyncio
import ssl

import pytest
from aiokafka.conn import OAuthAuthenticator
from aiokafka.errors import (
    KafkaConnectionError,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanismError,
)

from processor.core.errors import ConfigError, UnreachableError
from processor.kafka import login
from processor.kafka.tokens import TokenError
from processor.settings import Settings

SCRAM = Settings(
    security_protocol="SASL_SSL",
    sasl_mechanism="SCRAM-SHA-512",
    sasl_username="ada",
    sasl_password="hush",  # noqa: S106 - made up
)


def certificate_error(code, message):
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_code, error.verify_message = code, message
    return error


def caused(error, cause):
    error.__cause__ = cause
    return error


def alert(name):
    error = ssl.SSLError(1, name)
    error.reason = name
    # As aiokafka has it, when the broker ends a connection that stood already.
    return caused(KafkaConnectionError("closed"), error)


@pytest.mark.parametrize(
    ("failure", "remedy"),
    [
        (SaslAuthenticationFailed("bad"), "KAFKA_SASL_USERNAME=ada, its password"),
        (UnsupportedSaslMechanismError(), "takes no KAFKA_SASL_MECHANISM=SCRAM-SHA-512"),
        (certificate_error(10, "expired"), "have the broker's certificate renewed"),
        (certificate_error(9, "not yet valid"), "check the clocks"),
        (certificate_error(62, "hostname"), "advertised.listeners"),
        (certificate_error(64, "IP address"), "advertised.listeners"),
        (certificate_error(20, "issuer"), "KAFKA_SSL_CA_LOCATION (now the system's authorities)"),
        (alert("SSLV3_ALERT_BAD_CERTIFICATE"), "KAFKA_SSL_CERTIFICATE_LOCATION (now none given)"),
        (alert("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "refuses our certificate"),
        (alert("TLSV1_ALERT_UNKNOWN_CA"), "refuses our certificate"),
        (alert("WRONG_VERSION_NUMBER"), "one of a listener with TLS"),
        (caused(TokenError("no"), ConfigError("401")), "401"),
    ],
)
def test_failure_that_a_person_must_mend_says_how(failure, remedy):
    found = login.reason(SCRAM, "b:1", failure)
    assert isinstance(found, ConfigError)
    assert str(found).startswith("b:1 over SASL_SSL: ")
    assert remedy in str(found)


def test_refused_token_is_told_from_a_refused_password():
    settings = Settings(
        security_protocol="SASL_SSL",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_file="t",  # noqa: S106 - a file's name
    )
    found = login.reason(settings, "b:1", SaslAuthenticationFailed('{"status":"invalid_token"}'))
    assert "issuer, audience and scope" in str(found)


def test_silent_token_endpoint_is_unreachable_like_a_silent_broker():
    failure = caused(TokenError("no"), UnreachableError("no token from https://x"))
    assert isinstance(login.reason(SCRAM, "b:1", failure), UnreachableError)


@pytest.mark.parametrize("failure", [ConnectionRefusedError(), KafkaConnectionError("closed")])
def test_silence_tells_nothing(failure):
    assert login.reason(SCRAM, "b:1", failure) is None


class Tokens:
    async def token(self):
        return "abc"

    def extensions(self):
        return {}


def steps(kind, *payloads):
    authenticator = kind(sasl_oauth_token_provider=Tokens())

    async def go():
        return [await authenticator.step(it) for it in payloads]

    return asyncio.run(go())


def test_token_that_is_taken_ends_the_login():
    first, last = steps(login.TokenLogin, None, b"")
    assert first == (b"n,,\x01auth=Bearer abc\x01\x01", True)
    assert last is None


def test_refusal_of_a_token_is_answered():
    """Symptom: a refused token looked like a broken connection. RFC 7628, section 3.2.3."""
    refusal = b'{"status":"invalid_token"}'
    assert steps(login.TokenLogin, None, refusal)[1] == (b"\x01", True)
    # aiokafka's own takes it for success; once it doesn't, ours can go.
    assert steps(OAuthAuthenticator, None, refusal)[1] is None
