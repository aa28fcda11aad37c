"""Rules about brokers: what they can do, and how they are set."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from processor.doctor.facts import BrokerFacts
from processor.doctor.finding import Finding, Level, or_ok
from processor.doctor.safety import INTERNAL
from processor.kafka.producing import TRANSACTION_TIMEOUT_MS
from processor.kafka.rights import Right, grant_command
from processor.kafka.topic_checks import ENVELOPE_BYTES
from processor.settings import Settings

#: Settings that are asked for.
BROKER_KEYS: Final = (
    *INTERNAL.values(),
    "transaction.max.timeout.ms",
    "transactional.id.expiration.ms",
    "transaction.state.log.min.isr",
    "group.min.session.timeout.ms",
    "group.max.session.timeout.ms",
    "socket.request.max.bytes",
    "auto.create.topics.enable",
)
#: Kafka's numbers of requests, and the version of each that a feature needs.
_PRODUCE, _FETCH, _METADATA, _HEARTBEAT, _INIT_PRODUCER_ID = 0, 1, 3, 12, 22
_PRODUCE_ZSTD: Final = 7
_HEARTBEAT_STATIC: Final = 3
_METADATA_RIGHTS: Final = 8
#: The newest fetch request of each release of Apache Kafka, the newest first.
_RELEASES: Final = (
    (18, "4.1"),
    (17, "3.9"),
    (16, "3.7"),
    (15, "3.5"),
    (13, "3.1"),
    (12, "2.7"),
    (11, "2.3"),
    (10, "2.1"),
    (8, "2.0"),
    (0, "0.11"),
)
_DAY_MS: Final = 86_400_000


class _Bound(NamedTuple):
    """What a number of a broker may be, and what else happens."""

    key: str
    least: float
    most: float
    level: Level
    why: str
    remedy: str


def broker_findings(settings: Settings, brokers: Sequence[BrokerFacts]) -> list[Finding]:
    """Judge what brokers can do and how they are set."""
    return [
        *_version_findings(settings, brokers),
        *or_ok(
            "brokers",
            "transactions, groups and requests may be as long and large as ours",
            _configuration_findings(settings, brokers),
        ),
    ]


def release_of(broker: BrokerFacts) -> str:
    """Return the oldest release of Apache Kafka that speaks as the broker does."""
    fetch = broker.versions.get(_FETCH, 0)
    return next(release for version, release in _RELEASES if fetch >= version)


def _version_findings(settings: Settings, brokers: Sequence[BrokerFacts]) -> Iterator[Finding]:
    for broker in brokers:
        where, versions = f"broker {broker.node_id}", broker.versions
        yield Finding(Level.OK, where, f"speaks as Apache Kafka {release_of(broker)} or newer does")
        if _INIT_PRODUCER_ID not in versions:
            remedy = "use brokers that have them: Apache Kafka 2.4 or newer"
            yield Finding(Level.BREAKS, where, "knows no transactions", remedy)
        if settings.compression == "zstd" and versions.get(_PRODUCE, 0) < _PRODUCE_ZSTD:
            remedy = "PROCESSOR_COMPRESSION=lz4, or Apache Kafka 2.1"
            yield Finding(Level.BREAKS, where, "takes no zstd", remedy)
        if settings.group_instance_id and versions.get(_HEARTBEAT, 0) < _HEARTBEAT_STATIC:
            remedy = "unset KAFKA_GROUP_INSTANCE_ID, or Apache Kafka 2.3"
            yield Finding(Level.BREAKS, where, "knows no static members", remedy)
        if versions.get(_METADATA, 0) < _METADATA_RIGHTS:
            what = "tells nobody's rights before they are used (KIP-430)"
            yield Finding(Level.NOTE, where, what)
    if len(releases := sorted({release_of(it) for it in brokers})) > 1:
        what = f"brokers speak as different releases do: {', '.join(releases)}"
        yield Finding(Level.NOTE, "brokers", what, "finish the upgrade of the cluster")


def _configuration_findings(
    settings: Settings, brokers: Sequence[BrokerFacts]
) -> Iterator[Finding]:
    bounds = _bounds(settings, len(brokers))
    for broker in brokers:
        where = f"broker {broker.node_id}"
        if broker.hidden:
            right = Right("DescribeConfigs", "cluster", "kafka-cluster")
            what = f"how it is set was not looked at: {broker.hidden}"
            remedy = f"to have it looked at, run:\n  {grant_command(settings, right)}"
            yield Finding(Level.NOTE, where, what, remedy)
        for bound in bounds:
            value = broker.number(bound.key)
            if value is not None and not bound.least <= value <= bound.most:
                yield Finding(bound.level, where, f"{bound.key}={value}: {bound.why}", bound.remedy)
        if broker.configs.get("auto.create.topics.enable") == "true":
            yield Finding(
                Level.NOTE,
                where,
                "auto.create.topics.enable=true: a topic whose name is mistyped anywhere is made, "
                "with settings that fit nothing here",
                "set auto.create.topics.enable=false in server.properties",
            )


def _bounds(settings: Settings, broker_count: int) -> tuple[_Bound, ...]:
    session_ms = settings.session_timeout_s * 1000
    set_it = "set {}={} in server.properties"
    any_number = float("inf")
    return (
        _Bound(
            "transaction.max.timeout.ms",
            TRANSACTION_TIMEOUT_MS,
            any_number,
            Level.BREAKS,
            f"ours of {TRANSACTION_TIMEOUT_MS} ms are refused, and no partition opens",
            set_it.format("transaction.max.timeout.ms", 900_000),
        ),
        _Bound(
            "transactional.id.expiration.ms",
            _DAY_MS,
            any_number,
            Level.WARN,
            "a partition without records for that long is opened anew at the next one",
            set_it.format("transactional.id.expiration.ms", 7 * _DAY_MS),
        ),
        _Bound(
            "transaction.state.log.min.isr",
            0,
            broker_count,
            Level.BREAKS,
            f"with {broker_count} brokers no transaction can be written down",
            set_it.format("transaction.state.log.min.isr", min(2, broker_count)),
        ),
        _Bound(
            "transaction.state.log.min.isr",
            min(2, broker_count),
            any_number,
            Level.WARN,
            "what only one broker has counts as committed, and is lost with its disk",
            set_it.format("transaction.state.log.min.isr", 2),
        ),
        _Bound(
            "group.min.session.timeout.ms",
            0,
            session_ms,
            Level.BREAKS,
            f"the group takes no member with PROCESSOR_SESSION_TIMEOUT_S={session_ms / 1000:g}",
            "raise PROCESSOR_SESSION_TIMEOUT_S",
        ),
        _Bound(
            "group.max.session.timeout.ms",
            session_ms,
            any_number,
            Level.BREAKS,
            f"the group takes no member with PROCESSOR_SESSION_TIMEOUT_S={session_ms / 1000:g}",
            "lower PROCESSOR_SESSION_TIMEOUT_S",
        ),
        _Bound(
            "socket.request.max.bytes",
            settings.max_chunk_bytes + ENVELOPE_BYTES,
            any_number,
            Level.BREAKS,
            f"a chunk of PROCESSOR_MAX_CHUNK_BYTES={settings.max_chunk_bytes} may not fit a "
            "request, whose connection is then closed",
            "lower PROCESSOR_MAX_CHUNK_BYTES, or raise socket.request.max.bytes",
        ),
    )
