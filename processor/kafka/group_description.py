"""What a group's coordinator says of it, with the ids of static members (KIP-345) and our rights.

aiokafka's own request is older and reads the answer of its newest version as that of another.
"""

from typing import Final, NamedTuple

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import CoordinationType
from aiokafka.protocol.admin import DescribeGroupsRequest
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Array, Boolean, Bytes, Int16, Int32, Schema, String

_SETTLING: Final = ("PreparingRebalance", "CompletingRebalance")


class Member(NamedTuple):
    """One member: its client's name and host, and its own id if it is a static one."""

    client_id: str
    host: str
    instance_id: str | None

    def __str__(self) -> str:
        """Return where it is; a client may call itself anything, terminal codes included."""
        name = f"{self.client_id} at {self.host}"
        return name if name.isprintable() else ascii(name)


class GroupDescription(NamedTuple):
    """A group as its coordinator knows it.

    Attributes:
        code: Kafka's number of an error, 0 for none.
        state: Its name; ``Dead`` of a group that there is not.
        members: Who is in it.
        operations: What we may do to it, as bits.
    """

    code: int
    state: str
    members: tuple[Member, ...]
    operations: int

    @property
    def is_settling(self) -> bool:
        """Whether it is in a rebalance."""
        return self.state in _SETTLING


async def describe_group(admin: AIOKafkaAdminClient, group: str) -> GroupDescription:
    """Ask a group's coordinator; it has to be found.

    Raises:
        KafkaError: There is no coordinator, or the group is hidden from us.
        NotImplementedError: It is older than Apache Kafka 2.4.
    """
    node = await admin._client.coordinator_lookup(CoordinationType.GROUP, group)  # noqa: SLF001
    answer = await admin._send_request(_DescribeGroup(group), node)  # noqa: SLF001
    [(code, _, state, _, _, members, operations)] = answer.groups
    found = (Member(client_id, host, instance) for _, instance, client_id, host, *_ in members)
    return GroupDescription(code, state, tuple(found), operations)


class DescribeGroupsResponse_v4(Response):  # type: ignore[misc]  # noqa: N801 - aiokafka's names
    """Groups with their members and what we may do to them."""

    API_KEY = DescribeGroupsRequest.API_KEY
    API_VERSION = 4
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "groups",
            Array(
                ("error_code", Int16),
                ("group", String("utf-8")),
                ("state", String("utf-8")),
                ("protocol_type", String("utf-8")),
                ("protocol", String("utf-8")),
                (
                    "members",
                    Array(
                        ("member_id", String("utf-8")),
                        ("group_instance_id", String("utf-8")),
                        ("client_id", String("utf-8")),
                        ("client_host", String("utf-8")),
                        ("member_metadata", Bytes),
                        ("member_assignment", Bytes),
                    ),
                ),
                ("authorized_operations", Int32),
            ),
        ),
    )


class DescribeGroupsRequest_v4(RequestStruct):  # type: ignore[misc]  # noqa: N801
    """Asks for groups."""

    API_KEY = DescribeGroupsRequest.API_KEY
    API_VERSION = 4
    RESPONSE_TYPE = DescribeGroupsResponse_v4
    SCHEMA = Schema(("groups", Array(String("utf-8"))), ("include_authorized_operations", Boolean))


class _DescribeGroup(Request[DescribeGroupsRequest_v4]):  # type: ignore[misc]
    """Builds it."""

    API_KEY = DescribeGroupsRequest.API_KEY

    def __init__(self, group: str) -> None:
        self._group = group

    def build(
        self, request_struct_class: type[DescribeGroupsRequest_v4]
    ) -> DescribeGroupsRequest_v4:
        """Return the request."""
        return request_struct_class([self._group], True)  # noqa: FBT003
