"""What the doctor says: one finding, how grave it is, and what to do."""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """How grave a finding is; the gravest first."""

    BREAKS = "breaks"
    WARN = "warn"
    NOTE = "note"
    OK = "ok"


class Finding(NamedTuple):
    """One thing that was looked at.

    Attributes:
        level: ``breaks`` a promise, or keeps workers from starting; ``warn`` may come to that, or
            costs; ``note`` is good to know.
        where: Topic, partition, group, broker or clock.
        what: What was found.
        remedy: What to do about it; empty where nothing needs doing.
    """

    level: Level
    where: str
    what: str
    remedy: str = ""


def or_ok(where: str, what: str, findings: Iterable[Finding]) -> list[Finding]:
    """Return ``findings``, or if there is none that all is well."""
    return list(findings) or [Finding(Level.OK, where, what)]


def gravest_first(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by level, otherwise in their order."""
    order = list(Level)
    return sorted(findings, key=lambda it: order.index(it.level))
