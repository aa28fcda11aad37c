"""The private names of Faust and aiokafka that we plug into, checked at start.

A release that renames one would otherwise leave our part silently unused, and stock Faust loses
records under a crash.
"""

from asyncio import StreamReader
from types import ModuleType
from typing import Final

import aiokafka.client
import aiokafka.conn
import aiokafka.consumer.fetcher
from aiokafka import AIOKafkaConsumer
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator
from aiokafka.consumer.fetcher import Fetcher, FetchResult, PartitionRecords
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.producer.message_accumulator import MessageAccumulator
from aiokafka.producer.sender import Sender
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import _MemoryRecordsPy
from faust import App, Worker
from faust.app import BootStrategy
from faust.stores.memory import Store
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.tables.table import Table
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Transport

from processor.core.errors import ConfigError

PLUG_POINTS: Final[dict[type | ModuleType, tuple[str, ...]]] = {
    App: (
        "BootStrategy",
        "_new_transport",
        "_create_directories",
        "start",
        "on_first_start",
        "on_start",
        "on_stop",
        "on_rebalance_start",
    ),
    BootStrategy: ("enable_kafka_producer",),
    Worker: ("change_workdir", "_install_signal_handlers_unix", "_schedule_shutdown"),
    Transport: ("Consumer",),
    AIOKafkaConsumerThread: (
        "_create_worker_consumer",
        "_fetch_records",
        "_ensure_consumer",
        "_gather_remaining_tasks",
        "call_thread",
        "on_crash",
        "on_start",
    ),
    Consumer: (
        "_new_consumer_thread",
        "_wait_next_records",
        "_commit",
        "_add_gap",
        "getmany",
        "perform_seek",
    ),
    TableManager: ("_update_channels", "on_start", "recovery"),
    Recovery: ("_restart_recovery", "_resume_streams", "on_rebalance"),
    Table: ("_new_store", "partition_for_key", "send_changelog"),
    Store: ("on_recovery_completed",),
    AIOKafkaConsumer: ("start", "stop"),
    AIOKafkaClient: ("send",),
    Fetcher: ("_create_fetch_waiter", "_notify", "_update_fetch_positions", "_proc_fetch_request"),
    FetchResult: ("check_assignment", "_update_position"),
    PartitionRecords: ("_consume_aborted_up_to", "_contains_abort_marker"),
    GroupCoordinator: (
        "close",
        "_stop_heartbeat_task",
        "_do_heartbeat",
        "need_rejoin",
        "_send_req",
    ),
    _DefaultRecordBatchPy: ("_maybe_uncompress", "_read_msg"),
    _MemoryRecordsPy: ("next_batch", "has_next"),
    Sender: ("_do_txn_commit", "sender_task"),
    MessageAccumulator: ("create_builder", "add_batch"),
    AIOKafkaConnection: ("connect", "_read"),
    OAuthAuthenticator: ("step",),
    StreamReader: ("feed_data", "readexactly", "_wait_for_data", "_wakeup_waiter"),
    aiokafka.client: ("create_conn",),
    aiokafka.conn: ("AIOKafkaProtocol", "OAuthAuthenticator"),
    aiokafka.consumer.fetcher: ("MemoryRecords",),
}


def check_plug_points() -> None:
    """Return if all are there.

    Raises:
        ConfigError: The installed versions lack some.
    """
    missing = [
        f"{owner.__module__}.{owner.__name__}.{name}"
        if isinstance(owner, type)
        else f"{owner.__name__}.{name}"
        for owner, names in PLUG_POINTS.items()
        for name in names
        if not hasattr(owner, name)
    ]
    if missing:
        message = (
            f"the installed faust-streaming or aiokafka lacks {', '.join(missing)}; install the "
            "versions that this package names"
        )
        raise ConfigError(message)
