"""What the oracle found."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

Fault = Literal[
    "missing",  # a record is in no chunk, though a later one of its session is, or must be
    "repeated",  # a record is in two chunks
    "reordered",  # a record comes after a later one
    "altered",  # other bytes or another timestamp than in the log, or no such record
    "gaps",  # t is not the previous one plus 1
    "wrong_partition",  # the chunk is not in its records' partition
    "over_budget",  # several records above max_tokens, or over_budget says otherwise
    "tokens",  # a token count that the record's characters do not give
    "boundaries",  # closed for tokens, though the next record would have fitted
    "digests",  # the chain of digests is broken
    "ends",  # an end of session without its final chunk, or the reverse
    "malformed",  # not a chunk, or of a session that is not in the log
    "dead_letters",  # not exactly the records that have no session, once each, as they were
]
NOTES_SHOWN: Final = 12


@dataclass
class Verdict:
    records: int = 0
    sessions: int = 0
    chunks: int = 0
    open: int = 0
    """Records at the end of their session that are in no chunk yet."""
    dead_letters: int = 0
    faults: Counter[Fault] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.faults.total()

    def blame(self, fault: Fault, note: str, *, count: int = 1) -> None:
        self.faults[fault] += count
        if len(self.notes) < NOTES_SHOWN:
            self.notes.append(f"{fault}: {note}")

    def __str__(self) -> str:
        said = (
            f"{self.records:,} records in {self.sessions:,} sessions -> {self.chunks:,} chunks, "
            f"{self.open:,} open, {self.dead_letters:,} dead letters; "
        )
        counts = ", ".join(f"{self.faults[name]:,} {name}" for name in get_args(Fault))
        return "\n  ".join([said + counts, *self.notes])
