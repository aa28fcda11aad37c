"""What a client may have to be allowed, and how to say which right is missing; no I/O.

``docs/security.md`` lists the same rights; a test holds both together.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Literal, NamedTuple

from aiokafka.errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
)

from processor.core.errors import ConfigError
from processor.kafka.flow import Flow, transactional_prefix
from processor.settings import Settings

Operation = Literal["Read", "Write", "Create", "Describe", "DescribeConfigs"]
Resource = Literal["topic", "group", "transactional-id", "cluster"]

#: Kafka's numbers of them (AclOperation), which are bits in what a broker says of itself.
OPERATION_CODES: Final[dict[Operation, int]] = {
    "Read": 3,
    "Write": 4,
    "Create": 5,
    "Describe": 8,
    "DescribeConfigs": 10,
}
FORBIDDEN: Final = (
    TopicAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    ClusterAuthorizationFailedError,
)


class Right(NamedTuple):
    """One operation on one resource, in the words of ``kafka-acls.sh``."""

    operation: Operation
    resource: Resource
    name: str

    def __str__(self) -> str:
        """Return it as a person says it."""
        return f"{self.operation} on {self.resource} {self.name}"


def flow_rights(flow: Flow) -> tuple[Right, ...]:
    """Return what an app has to be allowed once its topics are there."""
    # Its own output tells a first start from a lost changelog.
    own = (flow.output_topic,) if flow.owns_output else ()
    reads = (flow.input_topic, *own, flow.changelog_topic)
    writes = (flow.output_topic, flow.changelog_topic, flow.dead_letter_topic)
    all_topics = (flow.input_topic, *writes)
    return (
        *(Right("Read", "topic", it) for it in reads),
        *(Right("Write", "topic", it) for it in writes),
        *(Right("DescribeConfigs", "topic", it) for it in all_topics),
        Right("Read", "group", flow.group),
        Right("Write", "transactional-id", flow.transactional_prefix),
    )


def missing_message(settings: Settings, rights: Sequence[Right]) -> str:
    """Say which rights are missing, to whom, and the commands that grant them."""
    lines = [f"{principal(settings)} lacks {', '.join(map(str, rights))}; grant with:"]
    return "\n  ".join((*lines, *(grant_command(settings, it) for it in rights)))


def principal(settings: Settings) -> str:
    """Return whom the broker takes us for, unless it maps names by rules of its own."""
    if settings.security_protocol.startswith("SASL"):
        if settings.sasl_mechanism == "OAUTHBEARER":
            return "User:<sub of the token>"
        return f"User:{settings.sasl_username}"
    if settings.ssl_certificate_location is not None:
        return f"User:<subject of {settings.ssl_certificate_location}>"
    return "User:ANONYMOUS"


def refused_rights(
    settings: Settings, error: BaseException, operation: Operation
) -> tuple[Right, ...]:
    """Return the rights that an error tells to be missing; none if it is of another kind.

    Args:
        settings: Name the group and the transactional ids.
        error: One of ``FORBIDDEN``, or one of ours with such a cause.
        operation: What was tried on a topic or group; the error doesn't tell.
    """
    if isinstance(error, ConfigError) and error.__cause__ is not None:
        return refused_rights(settings, error.__cause__, operation)
    if isinstance(error, TransactionalIdAuthorizationFailed):
        return (Right("Write", "transactional-id", _transactional_name(settings, error)),)
    if isinstance(error, GroupAuthorizationFailedError):
        group_operation: Operation = "Describe" if operation == "Describe" else "Read"
        return (Right(group_operation, "group", error.args[0] if error.args else settings.app_id),)
    if isinstance(error, TopicAuthorizationFailedError):
        return tuple(Right(operation, "topic", it) for it in _topics_in(error))
    if isinstance(error, ClusterAuthorizationFailedError):
        # Who may write to any topic may be an idempotent producer (KIP-679).
        return (Right(operation, "topic", settings.records_topic),)
    return ()


@contextmanager
def right_errors(settings: Settings, operation: Operation) -> Iterator[None]:
    """Have an error that tells of a missing right name it and the command that grants it.

    Raises:
        ConfigError: In place of such an error.
    """
    try:
        yield
    except (KafkaError, ConfigError) as error:
        if rights := refused_rights(settings, error, operation):
            raise ConfigError(missing_message(settings, rights)) from error
        raise


def _transactional_name(settings: Settings, error: TransactionalIdAuthorizationFailed) -> str:
    """Return the id that was refused; of a worker's or router's what all have in common."""
    topics = (settings.records_topic, settings.telemetry_topic)
    prefixes = [transactional_prefix(settings.app_id, it) for it in topics]
    refused: str = error.args[0] if error.args else prefixes[0]
    return next((it for it in prefixes if refused.startswith(it)), refused)


def _topics_in(error: TopicAuthorizationFailedError) -> tuple[str, ...]:
    """Return the topics that aiokafka names in it: one, several, or none."""
    named = error.args[0] if error.args else ()
    return (named,) if isinstance(named, str) else tuple(sorted(named))


def grant_command(settings: Settings, right: Right) -> str:
    """Return the command that grants a right."""
    # There is one cluster, and the tool takes no name of it.
    name = "" if right.resource == "cluster" else f" {right.name}"
    if right.resource == "transactional-id":
        name += " --resource-pattern-type prefixed"
    return (
        f"kafka-acls.sh --bootstrap-server {settings.bootstrap_servers} --command-config"
        f" admin.properties --add --allow-principal '{principal(settings)}' --operation"
        f" {right.operation} --{right.resource}{name}"
    )
