"""Facts of a deployment that is as it should be, but for what a test changes."""

from processor.doctor.facts import BrokerFacts, InputPartition, Replicas, Sample, Topic
from processor.doctor.finding import Level
from processor.kafka.reading import Ends
from processor.kafka.topic_admin import facts_of
from processor.settings import Settings

SETTINGS = Settings(app_id="app", bootstrap_servers="b:1")
CONFIGS = {
    "cleanup.policy": "delete",
    "max.message.bytes": "1048588",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
}
BROKER_CONFIGS = {
    "transaction.max.timeout.ms": "900000",
    "transactional.id.expiration.ms": "604800000",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "offsets.topic.replication.factor": "3",
    "group.min.session.timeout.ms": "6000",
    "group.max.session.timeout.ms": "1800000",
    "socket.request.max.bytes": "104857600",
    "auto.create.topics.enable": "false",
}
VERSIONS = {0: 13, 1: 18, 3: 13, 12: 4, 22: 6}


def broker(node_id=1, *, versions=(), hidden="", **configs):
    """Return a broker; ``group_min_session_timeout_ms=1`` changes that setting."""
    changed = {key.replace("_", "."): str(value) for key, value in configs.items()}
    found = {} if hidden else BROKER_CONFIGS | changed
    return BrokerFacts(node_id, {**VERSIONS, **dict(versions)}, found, hidden)


def topic(*, replicas=None, partitions=4, copies=3, **configs):
    changed = {key.replace("_", "."): str(value) for key, value in configs.items()}
    values = CONFIGS | changed
    kept = tuple(Replicas(it, 1, copies, copies) for it in range(partitions))
    return Topic(facts_of(partitions, values), values, replicas or kept)


def records(**configs):
    return {"records": topic(**{"message_timestamp_type": "LogAppendTime"} | configs)}


def partition(number=0, **changes):
    """Return a partition that a group has half read."""
    facts = {
        "start": 0,
        "ends": Ends(20, 20),
        "committed": 10,
        "changelog_start": 0,
        "changelog_end": 5,
    }
    return InputPartition(number, **facts | changes)


def sample(**changes):
    facts = {"topic": "records", "partition_count": 4, "asked_at_ms": 1_000_000}
    return Sample(**facts | changes)


def bad(findings):
    """Return what is not all right."""
    return [it for it in findings if it.level is not Level.OK]


def only(findings):
    [finding] = bad(findings)
    return finding
