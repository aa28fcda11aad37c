import re
from pathlib import Path

import pytest
from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartitionError,
)

from processor.core.errors import ConfigError
from processor.kafka.flow import chunking, routing
from processor.kafka.rights import (
    Right,
    flow_rights,
    missing_message,
    principal,
    refused_rights,
    right_errors,
)
from processor.settings import Settings

SETTINGS = Settings(
    bootstrap_servers="b:1",
    app_id="memory",
    security_protocol="SASL_SSL",
    sasl_username="ada",
    sasl_password="hush",  # noqa: S106 - made up
)


@pytest.mark.parametrize(
    ("error", "operation", "rights"),
    [
        (TopicAuthorizationFailedError("r"), "Read", [("Read", "topic", "r")]),
        (
            TopicAuthorizationFailedError({"d", "c"}),
            "Write",
            [("Write", "topic", "c"), ("Write", "topic", "d")],
        ),
        (GroupAuthorizationFailedError("memory"), "Write", [("Read", "group", "memory")]),
        (
            GroupAuthorizationFailedError("memory-router"),
            "Read",
            [("Read", "group", "memory-router")],
        ),
        (GroupAuthorizationFailedError(), "Describe", [("Describe", "group", "memory")]),
        (
            TransactionalIdAuthorizationFailed("memory-records-3"),
            "Write",
            [("Write", "transactional-id", "memory-records-")],
        ),
        (
            TransactionalIdAuthorizationFailed("memory-telemetry-0"),
            "Write",
            [("Write", "transactional-id", "memory-telemetry-")],
        ),
        (
            TransactionalIdAuthorizationFailed("another"),
            "Write",
            [("Write", "transactional-id", "another")],
        ),
        (ClusterAuthorizationFailedError(), "Write", [("Write", "topic", "records")]),
        (UnknownTopicOrPartitionError(), "Read", []),
    ],
)
def test_error_tells_which_right_is_missing(error, operation, rights):
    assert [tuple(it) for it in refused_rights(SETTINGS, error, operation)] == rights


@pytest.mark.parametrize(
    "right", [*flow_rights(chunking(SETTINGS)), *flow_rights(routing(SETTINGS))], ids=str
)
def test_message_names_operation_resource_principal_and_command(right):
    message = missing_message(SETTINGS, [right])
    assert f"User:ada lacks {right.operation} on {right.resource} {right.name};" in message
    command = (
        "kafka-acls.sh --bootstrap-server b:1 --command-config admin.properties --add"
        f" --allow-principal 'User:ada' --operation {right.operation}"
        f" --{right.resource} {right.name}"
    )
    assert command in message
    assert message.endswith("prefixed") is (right.resource == "transactional-id")


def test_error_of_ours_with_such_a_cause_is_told_from_another():
    ours = ConfigError("not allowed")
    ours.__cause__ = TopicAuthorizationFailedError("c")
    with (
        pytest.raises(ConfigError, match="lacks Write on topic c"),
        right_errors(SETTINGS, "Write"),
    ):
        raise ours
    other = ConfigError("something else")
    with pytest.raises(ConfigError) as found, right_errors(SETTINGS, "Write"):
        raise other
    assert found.value is other


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "User:ada"),
        ({"security_protocol": "PLAINTEXT"}, "User:ANONYMOUS"),
        (
            {"security_protocol": "SSL", "ssl_certificate_location": Path("me.pem")},
            "User:<subject of me.pem>",
        ),
        ({"sasl_mechanism": "OAUTHBEARER"}, "User:<sub of the token>"),
    ],
)
def test_principal_is_whom_the_broker_takes_us_for(changes, name):
    assert principal(SETTINGS.model_copy(update=changes)) == name


@pytest.mark.parametrize(("app", "flow"), [("A worker", chunking), ("A router", routing)])
def test_documented_rights_of_an_app_are_those_that_it_checks(app, flow):
    text = (Path(__file__).parents[3] / "docs" / "security.md").read_text()
    table = text.partition(f"### {app}\n")[2].partition("\n###")[0]
    rows = re.findall(r"^\| (\w[\w, ]*) \| ([\w-]+) \| `([^`]+)`", table, flags=re.MULTILINE)
    documented = {
        Right(operation, resource, name)
        for operations, resource, name in rows
        for operation in operations.split(", ")
    }
    assert documented == set(flow_rights(flow(SETTINGS.model_copy(update={"app_id": "APP"}))))
