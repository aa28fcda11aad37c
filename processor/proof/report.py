"""What a proof finds: faults by kind, and the numbers that must add up."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


class FaultKind(StrEnum):
    """A broken promise; the value completes "3 ..."."""

    MISSING = "missing"
    REPEATED = "repeated"
    REORDERED = "out of order"
    ALTERED = "altered"
    GAP = "gaps in t"
    PARTITION = "on a wrong partition"
    BUDGET = "wrong budgets"
    DIGEST = "broken digests"
    END = "wrong ends"
    CUT = "wrong cuts"
    DEAD_LETTER = "wrong dead letters"
    MALFORMED = "malformed"
    DIFFERENT = "recomputed otherwise"


#: Named in every summary, found or not.
_ALWAYS = (FaultKind.MISSING, FaultKind.REPEATED, FaultKind.REORDERED)


@dataclass(frozen=True, slots=True)
class Fault:
    """One broken promise.

    Attributes:
        kind: Which.
        what: What is wrong, in words.
        topic: Topic of the message that shows it.
        partition: Its partition.
        offset: Its offset.
        session: The session, where there is one.
        t: Index of the chunk, where it is about one.
        expected: Digest (hexadecimal) as it should be, where it is about bytes.
        found: Digest as it is.
    """

    kind: FaultKind
    what: str
    topic: str
    partition: int
    offset: int
    session: str | None = None
    t: int | None = None
    expected: str | None = None
    found: str | None = None

    def __str__(self) -> str:
        where = f"{self.topic}[{self.partition}]@{self.offset}"
        if self.session is not None:
            # A session id may hold anything, line breaks and terminal codes included.
            name = self.session if self.session.isprintable() else ascii(self.session)
            where += f", session {name}"
        if self.t is not None:
            where += f", t={self.t}"
        text = f"{where}: {self.what}"
        if self.expected is not None:
            text += f"\n  expected {self.expected}\n  found    {self.found}"
        return text


@dataclass(slots=True)
class Report:
    """Faults and numbers of all partitions.

    Attributes:
        message_count: All messages of the records topic.
        record_count: Those with a session and a value.
        end_count: Those with a session and without a value.
        sessionless_count: Those without a session.
        session_count: Sessions, one for each partition that a key is on.
        chunk_count: Messages of the chunks topic.
        chunked_count: Records found in a chunk, each counted once.
        duplicate_count: Records left out because they repeat another by their id.
        open_count: Records not in a chunk yet, each session's last ones.
        chunk_gone_count: Records whose chunk retention has deleted.
        record_gone_count: Records in chunks that retention has deleted from the records topic.
        recomputed_count: Chunks that were computed again, whatever came of it.
        not_recomputed_count: Chunks that should have been, but for their records or their counter.
        faults: How many of each kind.
        first: The first fault of each kind.
        warnings: What is no fault but worth knowing.
    """

    message_count: int = 0
    record_count: int = 0
    end_count: int = 0
    sessionless_count: int = 0
    session_count: int = 0
    chunk_count: int = 0
    chunked_count: int = 0
    duplicate_count: int = 0
    open_count: int = 0
    chunk_gone_count: int = 0
    record_gone_count: int = 0
    recomputed_count: int = 0
    not_recomputed_count: int = 0
    faults: Counter[FaultKind] = field(default_factory=Counter)
    first: dict[FaultKind, Fault] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def blame(self, fault: Fault, count: int = 1) -> None:
        """Count a fault, ``count`` times."""
        self.faults[fault.kind] += count
        self.first.setdefault(fault.kind, fault)

    @property
    def unaccounted_count(self) -> int:
        """Messages read that are none of: in a chunk, open, missing, left out, an end, a letter."""
        found = self.chunked_count + self.open_count + self.chunk_gone_count
        found += self.duplicate_count
        aside = self.end_count + self.sessionless_count
        return self.message_count - found - self.faults[FaultKind.MISSING] - aside

    @property
    def is_clean(self) -> bool:
        """Whether every promise holds and every message is accounted for."""
        return not self.faults.total() and not self.unaccounted_count

    def as_json(self) -> dict[str, Any]:
        """Return all of it for ``--output json``."""
        numbers = {name: getattr(self, name) for name in self.__slots__ if name.endswith("_count")}
        return {
            "ok": self.is_clean,
            **numbers,
            "unaccounted_count": self.unaccounted_count,
            "faults": {kind.name.lower(): self.faults[kind] for kind in FaultKind},
            "first_faults": [
                {**asdict(fault), "kind": kind.name.lower()} for kind, fault in self.first.items()
            ],
            "warnings": self.warnings,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Report":
        """Return the report that ``as_json`` gave ``document`` of."""
        report = cls(**{it: document[it] for it in cls.__slots__ if it.endswith("_count")})
        for name, count in document["faults"].items():
            if count:
                report.faults[FaultKind[name.upper()]] = count
        for fields in document["first_faults"]:
            kind = FaultKind[fields["kind"].upper()]
            report.first[kind] = Fault(**{**fields, "kind": kind})
        report.warnings += document["warnings"]
        return report

    def add(self, other: "Report") -> None:
        """Add what was found in another partition, which comes behind."""
        for name in self.__slots__:
            if name.endswith("_count"):
                setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults += other.faults
        self.first = other.first | self.first
        self.warnings += [it for it in other.warnings if it not in self.warnings]

    def take_chunks_for_log(self) -> None:
        """Count the records of chunks as those of the log, which was not read."""
        self.message_count = self.record_count = self.chunked_count = self.record_gone_count
        self.record_gone_count = 0

    def lines(self) -> list[str]:
        """Return the lines to print: warnings, the first fault of each kind, the summary."""
        lines = [f"warning: {warning}" for warning in self.warnings]
        beside = {
            "ends of session": self.end_count,
            "records without a session": self.sessionless_count,
            "duplicates left out, by record-id": self.duplicate_count,
            "records whose chunks retention has deleted": self.chunk_gone_count,
            "records in chunks that retention has deleted from the log": self.record_gone_count,
            "chunks that can't be recomputed": self.not_recomputed_count,
            "messages that are not accounted for": self.unaccounted_count,
        }
        lines += [f"beside: {count:,} {what}" for what, count in beside.items() if count]
        lines += [f"{kind}: {fault}" for kind, fault in self.first.items() if self.faults[kind]]
        return [*lines, self.summary()]

    def summary(self) -> str:
        """Return one line: what went in and came out, and how much of it was wrong."""
        found = [
            f"{self.faults[kind]:,} {kind}"
            for kind in FaultKind
            if kind in _ALWAYS or (self.faults[kind] and kind is not FaultKind.DIFFERENT)
        ]
        if self.open_count:
            found.append(f"{self.open_count:,} open")
        if self.recomputed_count:
            different = self.faults[FaultKind.DIFFERENT]
            found.append(f"{self.recomputed_count:,} recomputed, {different:,} different")
        return (
            f"{'verified' if self.is_clean else 'NOT verified'}: {self.record_count:,} records in "
            f"{self.session_count:,} sessions -> {self.chunk_count:,} chunks; {', '.join(found)}"
        )
