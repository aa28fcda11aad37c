"""A static member of the group (KIP-345) that notices when another process takes its id.

aiokafka joins with the instance id but leaves it out of its heartbeats, so the broker answers one
whose id was taken by a newer process as if it were unknown. It then joins again and takes the id
back, the other does the same, and so on for ever: nothing was processed any more. With the id in
each heartbeat the broker says that the member is fenced.
"""

from collections.abc import Callable
from typing import Any, Final

from aiokafka.protocol.api import Request, RequestStruct
from aiokafka.protocol.group import HeartbeatRequest, HeartbeatResponse_v1
from aiokafka.protocol.types import Int32, Schema, String

from processor.core.errors import FencedError
from processor.kafka.fetching import BatchConsumer

#: FENCED_INSTANCE_ID, which aiokafka knows no name for.
_FENCED: Final = 82


class StaticMember(BatchConsumer):
    """A ``BatchConsumer`` with an id of its own in the group.

    Args:
        on_fenced: Told, perhaps more than once, that another process has joined with the same id.
        arguments: Those of ``BatchConsumer``, with ``group_instance_id``.
    """

    def __init__(self, *, on_fenced: Callable[[FencedError], None], **arguments: Any) -> None:  # noqa: ANN401
        super().__init__(**arguments)
        self._on_fenced = on_fenced

    async def start(self) -> None:
        """Start, with the id in whatever the coordinator sends; it sends nothing before."""
        await super().start()
        coordinator = self._coordinator
        coordinator._client = _InstanceNamer(  # noqa: SLF001
            coordinator._client,  # noqa: SLF001
            self._group_instance_id,
            self._take_fencing,
        )

    def _take_fencing(self) -> None:
        message = (
            f"group {self._group_id}: another process has joined with our "
            f"KAFKA_GROUP_INSTANCE_ID={self._group_instance_id} and has our partitions now; give "
            "each worker an id of its own, the same after a restart"
        )
        self._on_fenced(FencedError(message))


class HeartbeatResponse_v3(HeartbeatResponse_v1):  # type: ignore[misc]  # noqa: N801 - aiokafka's names
    """The answer; only its version is new."""

    API_VERSION = 3


class HeartbeatRequest_v3(RequestStruct):  # type: ignore[misc]  # noqa: N801
    """A heartbeat that names the static member."""

    API_KEY = HeartbeatRequest.API_KEY
    API_VERSION = 3
    RESPONSE_TYPE = HeartbeatResponse_v3
    SCHEMA = Schema(
        ("group", String("utf-8")),
        ("generation_id", Int32),
        ("member_id", String("utf-8")),
        ("group_instance_id", String("utf-8")),
    )


class StaticHeartbeat(Request[HeartbeatRequest_v3]):  # type: ignore[misc]
    """Builds it."""

    API_KEY = HeartbeatRequest.API_KEY

    def __init__(self, plain: HeartbeatRequest, instance_id: str) -> None:
        self._plain = plain
        self._instance_id = instance_id

    def build(self, request_struct_class: type[HeartbeatRequest_v3]) -> HeartbeatRequest_v3:
        """Return the plain heartbeat with the id."""
        plain = self._plain
        return request_struct_class(
            plain._group,  # noqa: SLF001
            plain._generation_id,  # noqa: SLF001
            plain._member_id,  # noqa: SLF001
            self._instance_id,
        )


class _InstanceNamer:
    """A client that names the static member in heartbeats and tells when it is fenced."""

    def __init__(self, client: Any, instance_id: str, on_fenced: Callable[[], None]) -> None:  # noqa: ANN401
        self._client = client
        self._instance_id = instance_id
        self._on_fenced = on_fenced

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._client, name)

    async def send(self, node_id: int, request: Any, **arguments: Any) -> Any:  # noqa: ANN401
        if isinstance(request, HeartbeatRequest):
            request = StaticHeartbeat(request, self._instance_id)
        response = await self._client.send(node_id, request, **arguments)
        # Joining, syncing or in a heartbeat: whichever comes first.
        if getattr(response, "error_code", None) == _FENCED:
            self._on_fenced()
        return response
