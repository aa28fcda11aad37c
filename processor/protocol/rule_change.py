"""Open records that were checkpointed under another policy or counter, given back to the log.

Such records were judged by rules that are no longer ours: their tokens may be another counter's,
and together they may be over the new budget. They are read and judged anew, from the log, as open
records that were never checkpointed are.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from processor.core.errors import ConfigError, StateError
from processor.core.session_state import SessionState
from processor.protocol.changelog import PartitionEntry, decode_sessions
from processor.protocol.job import Opened
from processor.protocol.loading import SessionEntries


class Reopened(NamedTuple):
    """Where a partition stands once its checkpointed records are the log's again.

    Attributes:
        entry: With the replay starting at the first of them.
        states: The sessions that have open records and keep them.
        changed: Those that don't keep them, nothing open, though in the changelog they have.
    """

    entry: PartitionEntry
    states: list[SessionState]
    changed: list[SessionState]


def check_unchanged(entry: PartitionEntry, rule: dict[str, Any], where: str) -> None:
    """Return if ``rule`` is the one that the open chunks were made under.

    Raises:
        ConfigError: It is not; a person may accept that.
    """
    changed = [
        f"{name} {entry.rule.get(name)!r} -> {rule.get(name)!r}"
        for name in {**entry.rule, **rule}
        if entry.rule.get(name) != rule.get(name)
    ]
    if changed:
        message = (
            f"{where}: the policy differs from that of the open chunks: {', '.join(changed)}. "
            "Set it back, or go on with PROCESSOR_ACCEPT_POLICY_CHANGE=true"
        )
        raise ConfigError(message)


def reopened(opened: Opened[SessionEntries], rule: dict[str, Any]) -> Reopened:
    """Return what the last owner left, its checkpointed records given back if ``rule`` is new.

    Raises:
        StateError: The log holds some of them no more.
        ChangelogError: An entry can't be read.
    """
    states = list(decode_sessions(opened.changelog.entries, opened.where))
    if opened.entry.rule == rule:
        return Reopened(opened.entry, states, [])
    return given_back(opened.entry, states, opened.log_start, opened.where)


def given_back(
    entry: PartitionEntry, states: Iterable[SessionState], log_start: int, where: str
) -> Reopened:
    """Take the open records out of ``states`` and move the replay's start before them.

    Args:
        entry: The partition's entry.
        states: Its sessions that have open records, as the changelog has them.
        log_start: First offset that the log still holds.
        where: Topic and partition, for messages.

    Raises:
        StateError: The log holds some of them no more.
    """
    reopened = Reopened(entry, [], [])
    low, log_time_ms = entry.low, entry.log_time_ms
    for state in states:
        first = state.records[0].offset or 0
        if first < log_start:
            message = (
                f"{where}: session {state.session!r} has an open record of offset {first}, which "
                f"the log, from {log_start} on, holds no more; it can't be judged by another "
                "policy. Set the policy back until the session's chunk is out, then change it"
            )
            raise StateError(message)
        if first < low:
            # The log time at the record itself stands for the one before it: none that the replay
            # computes is another for that.
            low, log_time_ms = first, state.opened_at_ms
        emptied = replace(state, next_offset=first, records=(), opened_at_ms=0, last_at_ms=0)
        reopened.changed.append(emptied)
    moved = msgspec.structs.replace(entry, low=low, log_time_ms=log_time_ms)
    return reopened._replace(entry=moved)
