"""What the topics must be like: rules over what a broker said about them; no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from processor.settings import Settings, flag_names

INT32_MAX: Final = 2**31 - 1
# A chunk wraps a record in JSON, a changelog entry and a dead letter add to it: base64 costs a
# third, zstd takes it back; twice leaves room for both and for the envelope.
LARGER: Final = 2
ENVELOPE_BYTES: Final = 64 * 1024
#: An open record is written to the changelog before a quarter of its topic's retention is over.
RETENTION_SHARE: Final = 4


class Fault(NamedTuple):
    """What is wrong with a topic, or ``topics`` for several, and how to put it right."""

    topic: str
    what: str
    remedy: str

    def __str__(self) -> str:
        """Return it as a person says it."""
        return f"{self.what}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What a broker says about one topic."""

    partition_count: int
    cleanup_policies: frozenset[str]
    max_message_bytes: int
    retention_ms: int


def topic_names(settings: Settings) -> tuple[str, str, str, str]:
    """Return the names of the four topics, ``records`` first."""
    return (
        settings.records_topic,
        settings.chunks_topic,
        settings.changelog_topic,
        settings.dead_letter_topic,
    )


def route_topic_names(settings: Settings) -> tuple[str, str, str, str]:
    """Return the names of the topics of ``processor route``, telemetry first."""
    return (
        settings.telemetry_topic,
        settings.records_topic,
        settings.dead_letter_topic,
        settings.routes_changelog_topic,
    )


def find_faults(settings: Settings, topics: Mapping[str, TopicFacts]) -> list[Fault]:
    """Return what is wrong with the topics, each with a command that puts it right."""
    faults = []
    if missing := [name for name in topic_names(settings) if name not in topics]:
        faults.append(missing_fault(settings, missing))
    for name in topic_names(settings):
        if name in topics:
            faults += _partition_faults(settings, name, topics)
            faults += _cleanup_faults(settings, name, topics[name])
            faults += _size_faults(settings, name, topics)
    return faults


def find_route_faults(settings: Settings, topics: Mapping[str, TopicFacts]) -> list[Fault]:
    """Return what is wrong with the topics of a router, each with how to put it right."""
    names = route_topic_names(settings)
    if missing := [name for name in names if name not in topics]:
        return [missing_fault(settings, missing, "--telemetry ")]
    faults = [fault for name in names for fault in _cleanup_faults(settings, name, topics[name])]
    telemetry, changelog = topics[names[0]], topics[names[-1]]
    if changelog.partition_count != telemetry.partition_count:
        what = (
            f"{names[-1]} has {changelog.partition_count} partitions, {names[0]} has "
            f"{telemetry.partition_count}: streams have moved between partitions"
        )
        remedy = (
            "send telemetry to a new topic with the new count under a new PROCESSOR_APP_ID, or, if "
            "it may be read anew, delete the changelog:\n  "
            + _topics_tool(settings, names[-1], "--delete")
        )
        faults.append(Fault(names[-1], what, remedy))
    for name in (settings.records_topic, settings.dead_letter_topic):
        if topics[name].max_message_bytes < telemetry.max_message_bytes:
            what = (
                f"{name} takes messages of {topics[name].max_message_bytes:,} bytes, {names[0]} of"
                f" {telemetry.max_message_bytes:,}: what comes in has to fit"
            )
            config = f"max.message.bytes={telemetry.max_message_bytes}"
            faults.append(_corrected(settings, name, what, config))
    return faults


def missing_fault(settings: Settings, names: list[str], kind: str = "") -> Fault:
    """Say that topics are missing, and how to create them.

    Args:
        settings: Name the topics.
        names: Those that are missing.
        kind: Flag of ``processor topics create`` for other than a worker's.
    """
    flags = [f"{kind}--app-id {settings.app_id or 'NAME'}"]
    fields = ("bootstrap_servers", "records_topic", "chunks_topic", "dead_letter_topic")
    for field in (*fields, "telemetry_topic") if kind else fields:
        value = getattr(settings, field)
        if value != Settings.model_fields[field].default:
            flags.append(f"{flag_names()[field]} {value}")
    command = f"processor topics create {' '.join(flags)}"
    remedy = f"create with:\n  {command}"
    is_state_lost = bool(settings.app_id) and settings.changelog_topic in names
    if is_state_lost and not {settings.records_topic, settings.chunks_topic} & set(names):
        remedy += (
            f"\n  and if the app has run before, {settings.changelog_topic} and its state are lost;"
            " make that anew with:\n  processor state rebuild --all"
        )
    what = f"missing, or hidden from this user: {', '.join(names)}"
    return Fault(names[0] if len(names) == 1 else "topics", what, remedy)


def _partition_faults(
    settings: Settings, name: str, topics: Mapping[str, TopicFacts]
) -> list[Fault]:
    records = topics.get(settings.records_topic)
    count = topics[name].partition_count
    if records is None or count == records.partition_count:
        return []
    fault = f"{name} has {count} partitions, {settings.records_topic} has {records.partition_count}"
    if count < records.partition_count:
        remedy = _topics_tool(settings, name, f"--alter --partitions {records.partition_count}")
    else:
        remedy = _topics_tool(settings, name, "--delete") + "\n  processor topics create"
    otherwise = (
        f"if chunks were already made, {settings.records_topic} has grown and its sessions have"
        " moved: begin anew with another --app-id, --records-topic and --chunks-topic"
    )
    remedy = f"while nothing is in it, correct it with:\n  {remedy}\n  {otherwise}"
    return [Fault(name, fault, remedy)]


def compaction_faults(settings: Settings, name: str, topic: TopicFacts) -> list[Fault]:
    """Return what is wrong with a topic that holds entries by key."""
    if topic.cleanup_policies == {"compact"}:
        return []
    why = "state would grow for ever, or be deleted by age"
    return [_cleanup_fault(settings, name, topic, "compact", why)]


def _cleanup_faults(settings: Settings, name: str, topic: TopicFacts) -> list[Fault]:
    if name in (settings.changelog_topic, settings.routes_changelog_topic):
        return compaction_faults(settings, name, topic)
    if "compact" not in topic.cleanup_policies:
        return []
    why = "compaction would leave the last record of each session"
    return [_cleanup_fault(settings, name, topic, "delete", why)]


def _cleanup_fault(
    settings: Settings, name: str, topic: TopicFacts, wanted: str, why: str
) -> Fault:
    found = ",".join(sorted(topic.cleanup_policies))
    what = f"{name} has cleanup.policy={found}: {why}"
    return _corrected(settings, name, what, f"cleanup.policy={wanted}")


def _size_faults(settings: Settings, name: str, topics: Mapping[str, TopicFacts]) -> list[Fault]:
    records = topics.get(settings.records_topic)
    limit = topics[name].max_message_bytes
    faults = []
    if records is not None and name != settings.records_topic:
        needed = records.max_message_bytes + (name != settings.dead_letter_topic)
        if limit < needed:
            wanted = min(LARGER * records.max_message_bytes, INT32_MAX)
            what = (
                f"{name} takes messages of {limit:,} bytes, {settings.records_topic} of"
                f" {records.max_message_bytes:,}: it needs room for the largest record"
            )
            faults.append(_corrected(settings, name, what, f"max.message.bytes={wanted}"))
    if name != settings.records_topic and settings.max_chunk_bytes >= limit:
        wanted = min(settings.max_chunk_bytes + ENVELOPE_BYTES, INT32_MAX)
        what = (
            f"PROCESSOR_MAX_CHUNK_BYTES={settings.max_chunk_bytes} isn't below the {limit:,} bytes"
            f" that {name} takes"
        )
        remedy = configs_tool(settings, name, f"max.message.bytes={wanted}")
        faults.append(Fault(name, what, f"lower it, or:\n  {remedy}"))
    return faults


def _corrected(settings: Settings, name: str, what: str, config: str) -> Fault:
    """Return a fault that one setting of the topic puts right."""
    return Fault(name, what, f"correct it with:\n  {configs_tool(settings, name, config)}")


def _topics_tool(settings: Settings, name: str, action: str) -> str:
    return (
        f"kafka-topics.sh --bootstrap-server {settings.bootstrap_servers} --topic {name} {action}"
    )


def configs_tool(settings: Settings, name: str, config: str) -> str:
    """Return the command that sets something of a topic."""
    return (
        f"kafka-configs.sh --bootstrap-server {settings.bootstrap_servers} --alter"
        f" --entity-type topics --entity-name {name} --add-config {config}"
    )
