"""What there is to see of a partition's state, as documents."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from processor.core.session_state import SessionState
from processor.protocol.changelog import UNKNOWN, PartitionEntry
from processor.protocol.port import Survey


@dataclasses.dataclass(frozen=True, slots=True)
class PartitionView:
    """What there is to see of one partition.

    Attributes:
        topic: The records topic.
        number: Its number.
        entry: Its own entry, if there is one.
        states: Every session of the changelog.
        survey: The log and the group.
        open_counts: Records that were read and are in no chunk, by session.
        problem: Why a worker would not go on, if so.
    """

    topic: str
    number: int
    entry: PartitionEntry | None
    states: Mapping[str, SessionState]
    survey: Survey
    open_counts: Mapping[str, int]
    problem: str | None

    def as_json(self) -> dict[str, Any]:
        """Return the partition as one document."""
        entry, counts = self.entry, self.entry.counts if self.entry else None
        return {
            "topic": self.topic,
            "partition": self.number,
            "low": entry and entry.low,
            "seen": entry and entry.seen,
            "committed": self.survey.committed,
            "log_start": self.survey.log_start,
            "log_end": self.survey.stable_end,
            "records": counts and counts.records,
            "chunked": counts and counts.chunked,
            "dead_letters": counts and counts.dead_letters,
            "ends": counts and counts.ends,
            "duplicates": counts and (None if counts.duplicates == UNKNOWN else counts.duplicates),
            "sessions": len(self.states.keys() | self.open_counts.keys()),
            "open_sessions": len(self.open_counts),
            "open_records": sum(self.open_counts.values()),
            "rule": entry and entry.rule,
            "problem": self.problem,
        }

    def session_as_json(self, session: str) -> dict[str, Any] | None:
        """Return one session as a document, ``None`` if it is not here."""
        if session not in self.states and session not in self.open_counts:
            return None
        state = self.states.get(session) or SessionState.new(session)
        return {
            "session": session,
            "topic": self.topic,
            "partition": self.number,
            "t": state.t,
            "digest": state.digest.hex(),
            "next_offset": state.next_offset,
            "ended": state.ended,
            "open_records": self.open_counts.get(session, 0),
        }


def open_counts(
    states: Mapping[str, SessionState], records: Iterable[tuple[int, bytes | None, bytes | None]]
) -> Counter[str]:
    """Count each session's open records: those of its entry, and those of the log behind it.

    Args:
        states: The sessions of the changelog.
        records: Offset, key and value of what a replay would read.
    """
    found = Counter({name: len(it.records) for name, it in states.items() if it.records})
    for offset, key, value in records:
        try:
            session = (key or b"").decode()
        except UnicodeDecodeError:
            continue
        known = states.get(session)
        if session and value is not None and (known is None or offset >= known.next_offset):
            found[session] += 1
    return found
