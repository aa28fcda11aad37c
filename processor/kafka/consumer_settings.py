"""How the consumer is set up that is a member of the group."""

import os
from typing import Any, Final

from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from processor.kafka.connection import client_settings
from processor.settings import Settings

#: Bytes of one fetch of one partition, which are one batch: large enough that what a batch costs
#: does not show, small enough that a dozen of them queued are no memory to speak of.
_FETCH_BYTES: Final = 2 << 20
_FETCH_WAIT_MS: Final = 250
#: Fetches in a commit interval: one more would bring a chunk out no sooner, or just a little.
_FETCHES_A_COMMIT: Final = 4
#: Longer than this the fetches of a backlog would wait for each other.
_LONGEST_PACE_S: Final = 0.025
REBALANCE_TIMEOUT_MS: Final = 15_000


def client_id(group: str, process_id: int) -> str:
    """Return what the group's coordinator, and its tools, call the member of this process."""
    return f"{group}-{process_id}"


def fetch_pace_s(settings: Settings) -> float:
    """Return how long after a fetch the same node is asked again, at the earliest."""
    return min(settings.commit_interval_s / _FETCHES_A_COMMIT, _LONGEST_PACE_S)


def consumer_settings(settings: Settings, group: str) -> dict[str, Any]:
    """Return the arguments of the consumer that is a member of the group."""
    session_timeout_ms = round(settings.session_timeout_s * 1000)
    return {
        **client_settings(settings),
        "client_id": client_id(group, os.getpid()),
        "group_id": group,
        "group_instance_id": settings.group_instance_id,
        # Partitions that stay where they are keep their state and producer.
        "partition_assignment_strategy": [StickyPartitionAssignor],
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "isolation_level": "read_committed",
        # 10% of the worker's CPU, since aiokafka computes them in software. As in librdkafka the
        # broker's own check, at append, has to do.
        "check_crcs": False,
        "max_partition_fetch_bytes": _FETCH_BYTES,
        "fetch_max_wait_ms": _FETCH_WAIT_MS,
        "session_timeout_ms": session_timeout_ms,
        "heartbeat_interval_ms": max(session_timeout_ms // 10, 100),
        # After a broker's restart a group may wait this long for members that died meanwhile. Ours
        # need a heartbeat and what a revocation may take; one put out too early is fenced.
        "rebalance_timeout_ms": max(session_timeout_ms, REBALANCE_TIMEOUT_MS),
        "max_poll_interval_ms": 300_000,
    }
