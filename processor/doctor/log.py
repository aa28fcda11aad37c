"""Rules about what stands in the log and the group: offsets, members, and a sample of records."""

from collections.abc import Iterator, Sequence
from typing import Final

from processor.core.errors import StateError
from processor.doctor.facts import InputPartition, Sample
from processor.doctor.finding import Finding, Level, or_ok
from processor.doctor.partitioners import name_of
from processor.kafka.flow import Flow
from processor.kafka.group_description import GroupDescription
from processor.kafka.partitioner import partitioner
from processor.protocol.job import Remedies
from processor.protocol.port import Survey
from processor.protocol.start_checks import check_changelog_whole
from processor.settings import Settings

#: Sessions that a finding names.
_SHOWN: Final = 3


def offset_findings(
    flow: Flow, partitions: Sequence[InputPartition], remedies: Remedies
) -> list[Finding]:
    """Judge where the group stands in the log, and whether the changelog tells of it.

    Args:
        flow: Names the topics.
        partitions: Those of the input.
        remedies: What a person can do, by job.
    """
    lag = sum(it.lag for it in partitions)
    found = [
        finding
        for it in partitions
        for finding in (
            *_changelog_findings(flow, it, remedies),
            *_offset_findings(flow, it, remedies),
            *_hidden_findings(flow, it),
        )
    ]
    return or_ok(f"group {flow.group}", f"offsets fit the log; {lag:,} to read", found)


def group_findings(
    flow: Flow, group: GroupDescription, partition_count: int, lag: int
) -> list[Finding]:
    """Judge who reads.

    Args:
        flow: Names the group.
        group: What its coordinator says.
        partition_count: How many members can have work.
        lag: Offsets that are still to be read.
    """
    members = len(group.members)
    what = f"{members} members, {group.state.lower() or 'settled'}"
    return or_ok(f"group {flow.group}", what, _group_findings(flow, group, partition_count, lag))


def sample_findings(settings: Settings, sample: Sample) -> list[Finding]:
    """Judge a sample of what is read."""
    what = f"{len(sample.partitions):,} keys of {sample.records:,} records are where they belong"
    return [
        *or_ok(sample.topic, what, _key_findings(settings, sample)),
        *or_ok("clocks", "no record is ahead of our clock", _clock_findings(settings, sample)),
    ]


def _changelog_findings(flow: Flow, at: InputPartition, remedies: Remedies) -> Iterator[Finding]:
    where = f"{flow.changelog_topic}[{at.number}]"
    survey = Survey(0, at.start, at.ends.stable, at.committed, {}, at.changelog_start)
    try:
        check_changelog_whole(survey, remedies, where)
    except StateError as error:
        yield Finding(Level.BREAKS, where, str(error))
    if at.changelog_end == at.changelog_start and at.committed is not None:
        what = f"is empty, but the group has the offset {at.committed}: the state is lost"
        yield Finding(Level.BREAKS, where, what, remedies.lost)


def _offset_findings(flow: Flow, at: InputPartition, remedies: Remedies) -> Iterator[Finding]:
    where = f"{flow.input_topic}[{at.number}]"
    if at.committed is None:
        if at.changelog_end > at.changelog_start:
            what = (
                "the group has no offset although there is a state: offsets expire while no worker "
                "runs (offsets.retention.minutes); the next goes on from the state"
            )
            yield Finding(Level.NOTE, where, what)
    elif at.committed < at.start:
        what = (
            f"the log starts at {at.start}, the group has read up to {at.committed}: retention has "
            f"eaten records {remedies.eaten}"
        )
        yield Finding(Level.BREAKS, where, what)
    elif at.committed > at.ends.high:
        what = (
            f"the group has read up to {at.committed}, the log ends at {at.ends.high}: the topic "
            "was deleted and created again"
        )
        yield Finding(Level.BREAKS, where, what, f"start over with {remedies.start_over}")


def _hidden_findings(flow: Flow, at: InputPartition) -> Iterator[Finding]:
    if at.ends.stable < at.ends.high:
        yield Finding(
            Level.NOTE,
            f"{flow.input_topic}[{at.number}]",
            f"an open transaction holds back what is behind offset {at.ends.stable}",
            "if it stays, find who has it with `kafka-transactions.sh find-hanging` and abort it",
        )


def _group_findings(
    flow: Flow, group: GroupDescription, partition_count: int, lag: int
) -> Iterator[Finding]:
    where, members = f"group {flow.group}", group.members
    strangers = [it for it in members if not it.client_id.startswith(f"{flow.group}-")]
    if strangers:
        names = ", ".join(map(str, strangers[:_SHOWN]))
        what = f"has members that are no workers of ours: {names}"
        yield Finding(Level.BREAKS, where, what, "choose a PROCESSOR_APP_ID that nobody else uses")
    if group.is_settling:
        yield Finding(Level.NOTE, where, "is rebalancing", "ask again in a few seconds")
    if not members:
        level = Level.WARN if lag else Level.NOTE
        yield Finding(level, where, f"has no member; {lag:,} records wait", "start a worker")
    if len(members) > partition_count:
        what = f"has {len(members)} members for {partition_count} partitions: some have nothing"
        yield Finding(Level.NOTE, where, what, "they stand by; fewer will do")
    static = sum(it.instance_id is not None for it in members)
    if 0 < static < len(members):
        what = f"{static} of {len(members)} members have a KAFKA_GROUP_INSTANCE_ID"
        remedy = (
            "give each worker one of its own, or none: a restart of the others moves partitions"
        )
        yield Finding(Level.NOTE, where, what, remedy)


def _key_findings(settings: Settings, sample: Sample) -> Iterator[Finding]:
    if not sample.records:
        yield Finding(Level.NOTE, sample.topic, "holds no records to sample")
    if sample.keyless:
        what = f"{sample.keyless:,} of {sample.records:,} sampled records have no key"
        remedy = "have their producer set the session as key; what has come: docs/dead-letters.md"
        yield Finding(Level.WARN, sample.topic, f"{what}: they become dead letters", remedy)
    yield from _split_findings(settings, sample)
    yield from _partitioner_findings(sample)


def _split_findings(settings: Settings, sample: Sample) -> Iterator[Finding]:
    split = [(key, found) for key, found in sample.partitions.items() if len(found) > 1]
    if split:
        names = ", ".join(f"{_shown(key)} on {sorted(found)}" for key, found in split[:_SHOWN])
        what = (
            f"{len(split):,} sessions are on several partitions, each a session of its own there: "
            f"{names}"
        )
        remedy = (
            "have all producers use one partitioner, and none choose partitions by hand; sessions "
            f"that are split stay so: begin anew with another {settings.records_topic}"
        )
        yield Finding(Level.BREAKS, sample.topic, what, remedy)


def _partitioner_findings(sample: Sample) -> Iterator[Finding]:
    ours = partitioner(sample.partition_count)
    placed = [(key, number) for key, found in sample.partitions.items() for number in found]
    elsewhere = [(key, number) for key, number in placed if ours(key) != number]
    if not elsewhere:
        return
    name = name_of(elsewhere, sample.partition_count)
    # Of one partitioner alone, some keys are where ours would have put them by chance.
    is_alone = name is not None and name == name_of(placed, sample.partition_count)
    key, number = elsewhere[0]
    what = (
        f"{len(elsewhere):,} of {len(placed):,} keys are not where murmur2 puts them, such as "
        f"{_shown(key)} on {number} in place of {ours(key)}"
    )
    if is_alone:
        yield Finding(
            Level.WARN,
            sample.topic,
            f"{what}: all are where {name} puts them",
            "while every producer does, sessions are whole; but `processor produce`, `route` and "
            "`dead-letters redrive` use murmur2, and would split them. In librdkafka set "
            "partitioner=murmur2_random, for a topic that is new",
        )
        return
    by = "" if name is None else f"; they are where {name} puts them"
    yield Finding(
        Level.BREAKS,
        sample.topic,
        f"{what}{by}",
        "the next record of such a session may go elsewhere: have every producer use murmur2 "
        "(in librdkafka partitioner=murmur2_random) and none choose partitions by hand",
    )


def _clock_findings(settings: Settings, sample: Sample) -> Iterator[Finding]:
    grace_ms = 1000 * settings.clock_grace_s
    ahead_ms = sample.newest_ms - sample.asked_at_ms
    remedy = "have all clocks set by NTP, or raise PROCESSOR_CLOCK_GRACE_S"
    if ahead_ms > grace_ms:
        what = f"a record's time is {ahead_ms / 1000:.1f} s ahead of our clock"
        yield Finding(Level.WARN, "clocks", what, remedy)
    if sample.back_ms > grace_ms:
        what = f"times of records step back by up to {sample.back_ms / 1000:.1f} s in a partition"
        yield Finding(Level.WARN, "clocks", f"{what}: those who give them differ", remedy)


def _shown(key: bytes) -> str:
    """Return a key as text that no terminal takes amiss."""
    return ascii(key.decode(errors="replace"))
