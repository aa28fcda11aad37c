"""Rules about topics: do they fit each other, whose clock counts, how long is what kept."""

from collections.abc import Iterator, Mapping
from typing import Final

from processor.doctor.facts import Topic
from processor.doctor.finding import Finding, Level, or_ok
from processor.kafka.consumer_settings import REBALANCE_TIMEOUT_MS
from processor.kafka.topic_admin import TOPIC_KEYS
from processor.kafka.topic_checks import RETENTION_SHARE, Fault, configs_tool
from processor.settings import Settings

#: Settings that are asked for.
CONFIG_KEYS: Final = (
    *TOPIC_KEYS,
    "retention.bytes",
    "message.timestamp.type",
    "min.insync.replicas",
    "unclean.leader.election.enable",
)
_DAY_MS: Final = 86_400_000
_WEEK_MS: Final = 7 * _DAY_MS


def fault_findings(faults: list[Fault]) -> list[Finding]:
    """Return what keeps an app from starting, or that nothing does."""
    found = [Finding(Level.BREAKS, *it) for it in faults]
    return or_ok("topics", "partitions, compaction and largest messages fit each other", found)


def time_findings(settings: Settings, topics: Mapping[str, Topic]) -> list[Finding]:
    """Judge whose clock gives records their time."""
    if settings.records_topic not in topics:
        return []
    return or_ok("topics", "records have their broker's time", _time_findings(settings, topics))


def retention_findings(settings: Settings, name: str, topics: Mapping[str, Topic]) -> list[Finding]:
    """Judge whether what is not processed yet stays long enough.

    Args:
        settings: How long a worker may take to be replaced.
        name: Of the topic that is read.
        topics: All that there are.
    """
    if name not in topics:
        return []
    kept = _duration(topics[name].facts.retention_ms)
    found = _retention_findings(settings, name, topics[name])
    return or_ok(name, f"what is not processed yet is kept for {kept}", found)


def _time_findings(settings: Settings, topics: Mapping[str, Topic]) -> Iterator[Finding]:
    name = settings.records_topic
    if _is_producers_time(topics[name]):
        remedy = configs_tool(settings, name, "message.timestamp.type=LogAppendTime")
        yield Finding(
            Level.WARN,
            name,
            "message.timestamp.type=CreateTime: cuts by idle and age follow the producers' clocks, "
            "and may depend on when records arrived",
            f"have the broker's clock give the time:\n  {remedy}",
        )
    letters = settings.dead_letter_topic
    if letters in topics and not _is_producers_time(topics[letters]):
        remedy = configs_tool(settings, letters, "message.timestamp.type=CreateTime")
        yield Finding(
            Level.BREAKS,
            letters,
            "message.timestamp.type=LogAppendTime: a dead letter loses its record's time",
            f"correct it with:\n  {remedy}",
        )


def _is_producers_time(topic: Topic) -> bool:
    return topic.configs.get("message.timestamp.type", "CreateTime") == "CreateTime"


def _retention_findings(settings: Settings, name: str, topic: Topic) -> Iterator[Finding]:
    week = f"keep a week:\n  {configs_tool(settings, name, f'retention.ms={_WEEK_MS}')}"
    retention_ms = topic.facts.retention_ms
    if retention_ms >= 0:
        # What is open longer than its share is in the changelog; the rest is for being away.
        share_ms = retention_ms // RETENTION_SHARE
        away_ms = retention_ms - share_ms
        replaced_ms = REBALANCE_TIMEOUT_MS + round(
            1000 * (settings.stuck_after_s + settings.session_timeout_s)
        )
        lost = f"workers that are away for {_duration(away_ms)} find records deleted"
        if away_ms <= replaced_ms:
            what = (
                f"retention.ms={retention_ms}: {lost}, and it may take {_duration(replaced_ms)} "
                "to replace one that hangs"
            )
            yield Finding(Level.BREAKS, name, what, week)
        elif away_ms < _DAY_MS:
            yield Finding(Level.WARN, name, f"retention.ms={retention_ms}: {lost}", week)
        if share_ms < 1000 * max(settings.idle_s, settings.max_age_s):
            what = (
                f"retention.ms={retention_ms}: a record that is open for {_duration(share_ms)} is "
                "written to the changelog as well, and chunks are open for longer than that"
            )
            yield Finding(Level.WARN, name, what, week)
    if int(topic.configs.get("retention.bytes", -1)) >= 0:
        what = (
            f"retention.bytes={topic.configs['retention.bytes']}: by size records go however young "
            "they are, whether they are processed or not"
        )
        remedy = configs_tool(settings, name, "retention.bytes=-1")
        yield Finding(Level.WARN, name, what, f"keep by time alone:\n  {remedy}")


def _duration(ms: int) -> str:
    """Return a time as a person says it."""
    if ms < 0:
        return "ever"
    for unit, size_ms in (("d", _DAY_MS), ("h", 3_600_000), ("min", 60_000)):
        if ms >= 2 * size_ms:
            return f"{ms / size_ms:.3g} {unit}"
    return f"{ms / 1000:.3g} s"
