"""What the four topics must be like: rules over what a broker said about them; no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from processor.settings import Settings, flag_names

INT32_MAX: Final = 2**31 - 1
# A chunk wraps a record in JSON, a changelog entry and a dead letter add to it: base64 costs a
# third, zstd takes it back; twice leaves room for both and for the envelope.
LARGER: Final = 2
ENVELOPE_BYTES: Final = 64 * 1024


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


def find_faults(settings: Settings, topics: Mapping[str, TopicFacts]) -> list[str]:
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


def missing_fault(settings: Settings, names: list[str]) -> str:
    """Say that topics are missing, and how to create them."""
    flags = [f"--app-id {settings.app_id or 'NAME'}"]
    for field in ("bootstrap_servers", "records_topic", "chunks_topic", "dead_letter_topic"):
        value = getattr(settings, field)
        if value != Settings.model_fields[field].default:
            flags.append(f"{flag_names()[field]} {value}")
    command = f"processor topics create {' '.join(flags)}"
    fault = f"missing, or hidden from this user: {', '.join(names)}; create with:\n  {command}"
    is_state_lost = bool(settings.app_id) and settings.changelog_topic in names
    if is_state_lost and not {settings.records_topic, settings.chunks_topic} & set(names):
        fault += (
            f"\n  and if the app has run before, {settings.changelog_topic} and its state are lost;"
            " make that anew with:\n  processor state rebuild --all"
        )
    return fault


def _partition_faults(settings: Settings, name: str, topics: Mapping[str, TopicFacts]) -> list[str]:
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
    return [f"{fault}; while nothing is in it, correct it with:\n  {remedy}\n  {otherwise}"]


def compaction_faults(settings: Settings, name: str, topic: TopicFacts) -> list[str]:
    """Return what is wrong with a topic that holds entries by key."""
    if topic.cleanup_policies == {"compact"}:
        return []
    why = "state would grow for ever, or be deleted by age"
    return [_cleanup_fault(settings, name, topic, "compact", why)]


def _cleanup_faults(settings: Settings, name: str, topic: TopicFacts) -> list[str]:
    if name == settings.changelog_topic:
        return compaction_faults(settings, name, topic)
    if "compact" not in topic.cleanup_policies:
        return []
    why = "compaction would leave the last record of each session"
    return [_cleanup_fault(settings, name, topic, "delete", why)]


def _cleanup_fault(settings: Settings, name: str, topic: TopicFacts, wanted: str, why: str) -> str:
    found = ",".join(sorted(topic.cleanup_policies))
    remedy = _configs_tool(settings, name, f"cleanup.policy={wanted}")
    return f"{name} has cleanup.policy={found}: {why}; correct it with:\n  {remedy}"


def _size_faults(settings: Settings, name: str, topics: Mapping[str, TopicFacts]) -> list[str]:
    records = topics.get(settings.records_topic)
    limit = topics[name].max_message_bytes
    faults = []
    if records is not None and name != settings.records_topic:
        needed = records.max_message_bytes + (name != settings.dead_letter_topic)
        if limit < needed:
            wanted = min(LARGER * records.max_message_bytes, INT32_MAX)
            remedy = _configs_tool(settings, name, f"max.message.bytes={wanted}")
            faults.append(
                f"{name} takes messages of {limit:,} bytes, {settings.records_topic} of"
                f" {records.max_message_bytes:,}: it needs room for the largest record;"
                f" correct it with:\n  {remedy}"
            )
    if name != settings.records_topic and settings.max_chunk_bytes >= limit:
        wanted = min(settings.max_chunk_bytes + ENVELOPE_BYTES, INT32_MAX)
        remedy = _configs_tool(settings, name, f"max.message.bytes={wanted}")
        faults.append(
            f"PROCESSOR_MAX_CHUNK_BYTES={settings.max_chunk_bytes} isn't below the {limit:,} bytes"
            f" that {name} takes; lower it, or:\n  {remedy}"
        )
    return faults


def _topics_tool(settings: Settings, name: str, action: str) -> str:
    return (
        f"kafka-topics.sh --bootstrap-server {settings.bootstrap_servers} --topic {name} {action}"
    )


def _configs_tool(settings: Settings, name: str, config: str) -> str:
    return (
        f"kafka-configs.sh --bootstrap-server {settings.bootstrap_servers} --alter"
        f" --entity-type topics --entity-name {name} --add-config {config}"
    )
