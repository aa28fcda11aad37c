"""Does the state fit the log that we find? Where it does not, a person decides, nothing guesses."""

import asyncio
from typing import Any, Final

from processor.core.errors import ConfigError, StateError
from processor.protocol.changelog import REBUILD, Counts, PartitionEntry
from processor.protocol.job import Job, Remedies
from processor.protocol.port import PartitionBroker, Survey

#: A coordinator that has just moved may show an older offset for a while; only one that stays
#: different has been reset by a person.
_SETTLE_TRIES: Final = 10
_SETTLE_WAIT_S: Final = 0.5
SESSION_REMEDIES: Final = Remedies(
    lost=REBUILD,
    start_over="`processor state reset`",
    deleted=(
        "their sessions would start again at t=1. Delete the topic, create it with `processor "
        "topics create`, and make its entries anew with `processor state rebuild`"
    ),
    eaten=(
        "that are in no chunk yet. Raise retention.ms; then go on without them with `processor "
        "state rebuild --force --accept-deleted`, or start over with `processor state reset`"
    ),
)


async def survey_until_settled(broker: PartitionBroker, entry: PartitionEntry | None) -> Survey:
    """Look at the log and the group.

    Looks again for some seconds while the group's offset is not the one that the entry tells of.
    """
    offsets = [entry.fingerprint[0]] if entry is not None and entry.fingerprint else []
    expected = None if entry is None else entry.seen
    survey = await broker.survey(offsets)
    for _ in range(_SETTLE_TRIES):
        if survey.committed == expected:
            break
        await asyncio.sleep(_SETTLE_WAIT_S)
        survey = await broker.survey(offsets)
    return survey


def world_agrees(entry: PartitionEntry | None, survey: Survey, job: Job[Any], where: str) -> None:
    """Return if the state fits the log and the group.

    Raises:
        StateError: It does not; the message says what differs and what a person can do.
        ConfigError: Partitions or policy were changed.
    """
    check_changelog_whole(survey, job.remedies, where)
    if entry is None:
        if survey.has_output:
            message = (
                f"{where}: there are chunks, but neither the changelog nor the group's offset "
                "tells of them; t would start again at 1. If the changelog is lost, make it anew "
                "with `processor state rebuild`; if the chunks are another application's, choose "
                "another PROCESSOR_CHUNKS_TOPIC"
            )
            raise StateError(message)
        if survey.committed is not None:
            message = (
                f"{where}: the group has the offset {survey.committed} but the changelog holds "
                f"no state for it. If the changelog is lost, {job.remedies.lost}; if the group is "
                "another application's, choose a new PROCESSOR_APP_ID"
            )
            raise StateError(message)
        return
    _check_topic(entry, job, where)
    _check_partitions(entry, survey, where)
    _check_log(entry, survey, job.remedies, where)
    _check_offset(entry, survey, job.remedies, where)
    job.check(entry, where)


def check_changelog_whole(survey: Survey, remedies: Remedies, where: str) -> None:
    """Return if no entry of the changelog was deleted.

    Raises:
        StateError: Some were; what they told of would start anew.
    """
    if survey.changelog_start:
        message = (
            f"{where}: the changelog starts at offset {survey.changelog_start}: entries before it "
            f"were deleted, though compaction deletes none, and {remedies.deleted}"
        )
        raise StateError(message)


def first_entry(survey: Survey, job: Job[Any]) -> PartitionEntry:
    """Return where a partition stands that nobody has processed before."""
    start = survey.stable_end if job.start_at_end else survey.log_start
    return PartitionEntry(
        low=start,
        log_time_ms=0,
        seen=start,
        partition_count=survey.partition_count,
        rule=job.rule,
        fingerprint=None,
        counts=Counts(),
        topic=job.topic,
    )


def _check_topic(entry: PartitionEntry, job: Job[Any], where: str) -> None:
    if entry.topic not in ("", job.topic):
        message = (
            f"{where}: the state under this PROCESSOR_APP_ID is that of topic {entry.topic}; an "
            "application reads one topic. Choose another PROCESSOR_APP_ID for this one"
        )
        raise ConfigError(message)


def _check_partitions(entry: PartitionEntry, survey: Survey, where: str) -> None:
    if entry.partition_count != survey.partition_count:
        message = (
            f"{where}: the topic had {entry.partition_count} partitions and now has "
            f"{survey.partition_count}; sessions have moved between partitions. Send records to "
            "a new topic with the new count under a new PROCESSOR_APP_ID, or restore the old one"
        )
        raise ConfigError(message)


def _check_log(entry: PartitionEntry, survey: Survey, remedies: Remedies, where: str) -> None:
    if survey.log_start > entry.low:
        message = (
            f"{where}: the log starts at {survey.log_start}, we have to read from {entry.low} on; "
            f"retention has eaten records {remedies.eaten}"
        )
        raise StateError(message)
    if entry.seen > survey.stable_end:
        message = (
            f"{where}: processed up to {entry.seen} but the log ends at {survey.stable_end}; was "
            f"the topic deleted and created again? Start over with {remedies.start_over}"
        )
        raise StateError(message)
    if entry.fingerprint is not None:
        offset, timestamp_ms = entry.fingerprint
        found = survey.timestamps.get(offset, timestamp_ms)
        if found != timestamp_ms:
            message = (
                f"{where}: the record at offset {offset} has the timestamp {found}, it had "
                f"{timestamp_ms}; the topic was deleted and created again. Start over with "
                f"{remedies.start_over}"
            )
            raise StateError(message)


def _check_offset(entry: PartitionEntry, survey: Survey, remedies: Remedies, where: str) -> None:
    # No offset at all is no reset: the group's offsets expire while it is stopped for long.
    if survey.committed not in (None, entry.seen):
        message = (
            f"{where}: the group's offset is {survey.committed}, processed up to {entry.seen}; "
            "someone has reset the group. Offsets do not move this worker: to go on, set it back "
            f"with `kafka-consumer-groups.sh --reset-offsets --to-offset {entry.seen}`; or start "
            f"over with {remedies.start_over}"
        )
        raise StateError(message)
