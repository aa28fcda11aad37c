import asyncio
import contextlib
import inspect
import ssl

import aiokafka.client
import aiokafka.conn
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    RequestTimedOutError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from processor.core.errors import ConfigError, UnreachableError
from processor.kafka import login
from processor.kafka.connection import broker_errors, client_settings
from processor.kafka.tokens import FileTokens
from processor.settings import Settings

SASL = {"sasl_username": "ada", "sasl_password": "hush"}


def test_plain_connection_needs_the_address_alone():
    assert client_settings(Settings(bootstrap_servers="b:1")) == {
        "bootstrap_servers": "b:1",
        "security_protocol": "PLAINTEXT",
    }


def test_password_is_not_handed_out_without_sasl():
    assert "sasl_plain_password" not in client_settings(Settings(**SASL))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sasl_hands_over_mechanism_user_and_password(mechanism):
    settings = Settings(security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, **SASL)
    found = client_settings(settings)
    assert found["sasl_mechanism"] == mechanism
    assert (found["sasl_plain_username"], found["sasl_plain_password"]) == ("ada", "hush")
    assert "ssl_context" not in found


def test_oauthbearer_hands_over_where_tokens_come_from_and_no_password():
    settings = Settings(
        security_protocol="SASL_SSL",
        sasl_mechanism="OAUTHBEARER",
        sasl_oauthbearer_token_file="token",  # noqa: S106 - a file's name
        **SASL,
    )
    found = client_settings(settings)
    assert isinstance(found["sasl_oauth_token_provider"], FileTokens)
    assert "sasl_plain_password" not in found


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_ssl_checks_the_broker_and_its_name(protocol):
    context = client_settings(Settings(security_protocol=protocol, **SASL))["ssl_context"]
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname


@pytest.mark.parametrize("client", [AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer])
def test_every_client_of_aiokafka_takes_the_arguments(client):
    given = client_settings(Settings(security_protocol="SASL_SSL", **SASL))
    assert given.keys() <= inspect.signature(client).parameters.keys()


@pytest.mark.parametrize("content", [None, "not a certificate"])
def test_certificate_that_can_not_be_used_is_named(tmp_path, content):
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    settings = Settings(security_protocol="SSL", ssl_ca_location=file)
    with pytest.raises(ConfigError, match=r"KAFKA_SSL_CA_LOCATION.*ca\.pem"):
        client_settings(settings)


@pytest.mark.parametrize(
    "error", [KafkaConnectionError("refused"), RequestTimedOutError(), TimeoutError()]
)
def test_silence_of_the_broker_becomes_unreachable(error):
    with (
        pytest.raises(UnreachableError, match="no answer from b:1 over PLAINTEXT") as found,
        broker_errors(Settings(bootstrap_servers="b:1")),
    ):
        raise error
    assert found.value.__cause__ is error


@pytest.mark.parametrize(
    "error", [UnknownTopicOrPartitionError(), BrokenPipeError(), ValueError(), KeyboardInterrupt()]
)
def test_other_errors_pass_as_they_are(error):
    with pytest.raises(type(error)) as found, broker_errors(Settings()):
        raise error
    assert found.value is error


def test_missing_right_is_named_with_what_was_tried():
    error = TopicAuthorizationFailedError("r")
    with (
        pytest.raises(ConfigError, match="User:ANONYMOUS lacks Write on topic r;") as found,
        broker_errors(Settings(), "Write"),
    ):
        raise error
    assert "--operation Write --topic r" in str(found.value)


@pytest.fixture
def connect(monkeypatch):
    """Connect as aiokafka does, with a given outcome; its own way is put back afterwards."""
    for module, name in ((aiokafka.client, "create_conn"), (aiokafka.conn, "OAuthAuthenticator")):
        monkeypatch.setattr(module, name, getattr(module, name))
    login.install()

    async def connect_to(address, error):
        async def fail(*_, **__):
            if error is not None:
                raise error

        monkeypatch.setattr(login, "_connect", fail)
        with contextlib.suppress(KafkaError):
            await aiokafka.client.create_conn(*address)

    def go(*outcomes):
        """Connect once for each outcome, and then give up as a client does."""
        for outcome in outcomes:
            asyncio.run(connect_to(("b", 1), outcome))
        raise KafkaConnectionError

    return go


def test_refused_login_is_no_silence(connect):
    refused = pytest.raises(ConfigError, match="b:1 over SASL_SSL: the broker refuses our login")
    settings = Settings(security_protocol="SASL_SSL", **SASL)
    with refused as found, broker_errors(settings):
        connect(SaslAuthenticationFailed("bad"))
    assert "hush" not in str(found.value)


def test_refusal_that_was_followed_by_a_login_is_forgotten(connect):
    silent = pytest.raises(UnreachableError, match="no answer")
    with silent, broker_errors(Settings(security_protocol="SASL_SSL", **SASL)):
        connect(SaslAuthenticationFailed("bad"), None)


@pytest.mark.parametrize(
    ("servers", "said"),
    [("a:1", "; brokers call themselves b:1: mend advertised.listeners"), ("a:1, b:1", "")],
)
def test_address_that_only_brokers_know_of_themselves_is_told(connect, servers, said):
    """The usual trap of a broker in a container: it answers, and sends us to where it is not."""
    silent = pytest.raises(UnreachableError, match="no answer")
    with silent as found, broker_errors(Settings(bootstrap_servers=servers)):
        connect(KafkaConnectionError("no such host"))
    assert said in str(found.value)
    assert ("advertised.listeners" in str(found.value)) is bool(said)
