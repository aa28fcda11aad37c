"""Rights as an administrator gives and takes them; aiokafka has no words for that."""

import argparse
import shlex

from aiokafka.errors import for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Int8, Int16, Int32, Schema, String

from processor.kafka.rights import OPERATION_CODES, Right
from tests.e2e.asking import admin_client

RESOURCES = {"topic": 2, "group": 3, "cluster": 4, "transactional-id": 5}
LITERAL, PREFIXED, ALLOW = 3, 4, 3


class CreateAclsResponse_v1(Response):  # noqa: N801 - aiokafka's way to name them
    API_KEY = 30
    API_VERSION = 1
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("results", Array(("error_code", Int16), ("error_message", String("utf-8")))),
    )


class CreateAclsRequest_v1(RequestStruct):  # noqa: N801
    API_KEY = 30
    API_VERSION = 1
    RESPONSE_TYPE = CreateAclsResponse_v1
    SCHEMA = Schema(
        (
            "creations",
            Array(
                ("resource_type", Int8),
                ("resource_name", String("utf-8")),
                ("pattern_type", Int8),
                ("principal", String("utf-8")),
                ("host", String("utf-8")),
                ("operation", Int8),
                ("permission", Int8),
            ),
        )
    )


class DeleteAclsResponse_v1(Response):  # noqa: N801
    API_KEY = 31
    API_VERSION = 1
    # What was deleted follows each error, and is of no interest.
    SCHEMA = Schema(("throttle_time_ms", Int32), ("count", Int32), ("error_code", Int16))


class DeleteAclsRequest_v1(RequestStruct):  # noqa: N801
    API_KEY = 31
    API_VERSION = 1
    RESPONSE_TYPE = DeleteAclsResponse_v1
    SCHEMA = Schema(("filters", CreateAclsRequest_v1.SCHEMA.fields[0]))


class CreateAcls(Request[CreateAclsRequest_v1]):
    API_KEY = 30

    def __init__(self, entries):
        self._entries = entries

    def build(self, request_struct_class):
        return request_struct_class(self._entries)


class DeleteAcls(Request[DeleteAclsRequest_v1]):
    API_KEY = 31

    def __init__(self, entries):
        self._entries = entries

    def build(self, request_struct_class):
        return request_struct_class(self._entries)


def entry_of(principal, right):
    return (
        RESOURCES[right.resource],
        right.name,
        PREFIXED if right.resource == "transactional-id" else LITERAL,
        principal,
        "*",
        OPERATION_CODES[right.operation],
        ALLOW,
    )


async def grant(bootstrap, principal, rights):
    """Give rights; to have one already is no error."""
    entries = [entry_of(principal, it) for it in rights]
    async with admin_client(bootstrap) as admin:
        done = await admin._send_request(CreateAcls(entries))  # noqa: SLF001 - no public way
    for code, message in done.results:
        if code:
            raise for_code(code)(message)


async def revoke(bootstrap, principal, right):
    """Take a right."""
    async with admin_client(bootstrap) as admin:
        done = await admin._send_request(DeleteAcls([entry_of(principal, right)]))  # noqa: SLF001
    if done.error_code:
        raise for_code(done.error_code)


def in_command(command):
    """Return the principal and the right that a ``kafka-acls.sh`` command grants."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--add", action="store_true", required=True)
    for option in ("bootstrap-server", "command-config", "allow-principal", "operation"):
        parser.add_argument(f"--{option}", required=True)
    for resource in RESOURCES:
        parser.add_argument(f"--{resource}", dest=resource)
    parser.add_argument("--resource-pattern-type", default="literal")
    given = vars(parser.parse_args(shlex.split(command)[1:]))
    [resource] = [it for it in RESOURCES if given[it]]
    assert (given["resource_pattern_type"] == "prefixed") is (resource == "transactional-id")
    return given["allow_principal"], Right(given["operation"], resource, given[resource])
