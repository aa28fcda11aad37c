"""What a broker says that we may do (KIP-430), asked without doing it.

It tells of topics and groups that are there, and whether a transactional id is hidden from us. An
older broker tells nothing, and then nothing is missing here: the operation itself will say.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import CoordinationType
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    KafkaError,
    NoError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailed,
    for_code,
)
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.protocol.types import Array, Boolean, Int16, Int32, Schema, String

from processor.core.errors import ConfigError
from processor.kafka.connection import admin_client
from processor.kafka.group_description import describe_group
from processor.kafka.rights import OPERATION_CODES, Operation, Resource, Right, missing_message
from processor.settings import Settings

#: Of what is hidden neither of these is known: they don't let us see it.
_HIDDEN: Final = 1 << OPERATION_CODES["Create"] | 1 << OPERATION_CODES["DescribeConfigs"]
#: What a broker says when it was not asked, or can't tell.
_UNTOLD: Final = -(1 << 31)


async def check_rights(settings: Settings, rights: Iterable[Right]) -> None:
    """Return if nothing tells that one of ``rights`` is missing.

    Raises:
        ConfigError: Some are; the message names all, and the commands that grant them.
        UnreachableError: No broker answers.
    """
    async with admin_client(settings) as admin:
        await require_rights(settings, admin, rights)


async def require_rights(
    settings: Settings, admin: AIOKafkaAdminClient, rights: Iterable[Right]
) -> None:
    """Do as ``check_rights`` does, with a client that has started.

    Raises:
        ConfigError: As there.
    """
    if missing := await missing_rights(admin, rights):
        raise ConfigError(missing_message(settings, missing))


async def missing_rights(admin: AIOKafkaAdminClient, rights: Iterable[Right]) -> list[Right]:
    """Return those of ``rights`` that the broker tells to be missing."""
    rights = tuple(rights)
    told: dict[Resource, Mapping[str, int]] = {
        "topic": await _topic_operations(admin, _names(rights, "topic")),
        "group": await _each(admin, _names(rights, "group"), _group_operations),
        "transactional-id": await _each(
            admin, _names(rights, "transactional-id"), _transactional_operations
        ),
    }
    return [it for it in rights if not _has(told[it.resource][it.name], it.operation)]


def _names(rights: Iterable[Right], resource: str) -> list[str]:
    return sorted({it.name for it in rights if it.resource == resource})


def _has(operations: int, operation: Operation) -> bool:
    return operations == _UNTOLD or bool(operations & 1 << OPERATION_CODES[operation])


async def _each(
    admin: AIOKafkaAdminClient,
    names: Iterable[str],
    ask: Callable[[AIOKafkaAdminClient, str], Awaitable[int]],
) -> dict[str, int]:
    return {it: await ask(admin, it) for it in names}


async def _topic_operations(admin: AIOKafkaAdminClient, names: list[str]) -> dict[str, int]:
    operations = dict.fromkeys(names, _UNTOLD)
    try:
        answer = await admin._send_request(TopicOperations(names))  # noqa: SLF001 - no public way
    except NotImplementedError:  # the broker knows no such version
        return operations
    for code, name, _, _, told in answer.topics:
        if for_code(code) is TopicAuthorizationFailedError:
            operations[name] = _HIDDEN
        elif for_code(code) is NoError and told:
            operations[name] = told
    return operations


async def _group_operations(admin: AIOKafkaAdminClient, group: str) -> int:
    try:
        told = await describe_group(admin, group)
    except GroupAuthorizationFailedError:
        return 0
    except (NotImplementedError, KafkaError):  # it is still loading: this tells nothing
        return _UNTOLD
    error = for_code(told.code)
    if error is GroupAuthorizationFailedError:
        return 0
    return told.operations if error is NoError and told.operations else _UNTOLD


async def _transactional_operations(admin: AIOKafkaAdminClient, prefix: str) -> int:
    try:
        await admin._client.coordinator_lookup(CoordinationType.TRANSACTION, f"{prefix}0")  # noqa: SLF001
    except TransactionalIdAuthorizationFailed:
        return 0
    except KafkaError:
        pass
    return _UNTOLD


class MetadataResponse_v8(Response):  # type: ignore[misc]  # noqa: N801 - aiokafka's names
    """Topics with what we may do to them."""

    API_KEY = MetadataRequest.API_KEY
    API_VERSION = 8
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            Array(
                ("node_id", Int32),
                ("host", String("utf-8")),
                ("port", Int32),
                ("rack", String("utf-8")),
            ),
        ),
        ("cluster_id", String("utf-8")),
        ("controller_id", Int32),
        (
            "topics",
            Array(
                ("error_code", Int16),
                ("topic", String("utf-8")),
                ("is_internal", Boolean),
                (
                    "partitions",
                    Array(
                        ("error_code", Int16),
                        ("partition", Int32),
                        ("leader", Int32),
                        ("leader_epoch", Int32),
                        ("replicas", Array(Int32)),
                        ("isr", Array(Int32)),
                        ("offline_replicas", Array(Int32)),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
        ("cluster_authorized_operations", Int32),
    )


class MetadataRequest_v8(RequestStruct):  # type: ignore[misc]  # noqa: N801
    """Asks for topics by name; creates none."""

    API_KEY = MetadataRequest.API_KEY
    API_VERSION = 8
    RESPONSE_TYPE = MetadataResponse_v8
    SCHEMA = Schema(
        ("topics", Array(String("utf-8"))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
    )


class TopicOperations(Request[MetadataRequest_v8]):  # type: ignore[misc]
    """Builds it."""

    API_KEY = MetadataRequest.API_KEY

    def __init__(self, topics: list[str]) -> None:
        self._topics = topics

    def build(self, request_struct_class: type[MetadataRequest_v8]) -> MetadataRequest_v8:
        """Return the request."""
        return request_struct_class(self._topics, False, False, True)  # noqa: FBT003
