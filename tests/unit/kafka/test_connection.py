import inspect
import ssl

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    KafkaConnectionError,
    RequestTimedOutError,
    TopicAuthorizationFailedError,
)

from processor.core.errors import ConfigError, UnreachableError
from processor.kafka.connection import broker_errors, client_settings
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
    "error", [TopicAuthorizationFailedError(), BrokenPipeError(), ValueError(), KeyboardInterrupt()]
)
def test_other_errors_pass_as_they_are(error):
    with pytest.raises(type(error)) as found, broker_errors(Settings()):
        raise error
    assert found.value is error
