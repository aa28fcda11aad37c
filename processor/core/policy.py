"""When a chunk closes: the numbers, checked once."""

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from processor.core.errors import ConfigError

#: An instant that never comes, in milliseconds; stands for "no deadline" so that the
#: comparison on every record needs no branch.
NEVER_MS: Final = 1 << 62
#: What all names of headers may take as JSON: they stand in every chunk, beside its records.
_MAX_HEADER_NAMES_BYTES: Final = 400


class Boundary(StrEnum):
    """Where a chunk may end."""

    RECORD = "record"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Close before a chunk would hold more than ``n`` tokens (``n`` at most ``max_tokens``)."""

    n: int


@dataclass(frozen=True, slots=True)
class OrIdle:
    """Close at ``max_tokens``, or when no record has come for ``seconds``."""

    seconds: float


#: What closes a chunk beside the end of its session, its age and the caps on its size.
FlushTrigger = Tokens | OrIdle


@dataclass(frozen=True, slots=True)
class ChunkPolicy:
    """The rule of one worker, the same for all its sessions.

    Attributes:
        max_tokens: Budget of a chunk; only a single larger record exceeds it.
        split_on: Where a chunk may end; only between records.
        flush: What closes a chunk beside the budget; ``Tokens(max_tokens)`` when not given.
        max_age_s: Seconds from a chunk's first record after which it closes; 0 is never.
        max_chunk_bytes: Cap of the encoded chunk.
        max_chunk_records: Cap of records in a chunk.
        carry_headers: Names of the record headers that go into a chunk; they count in its bytes.
        deduplicate_records: Offsets in which a record with the ``record-id`` of another one of its
            session is left out; 0 is none.
        forget_ended_after_s: Seconds after a session's end from which whatever comes for it begins
            a new session of its name, at ``t`` = 1; 0 is never.
        flush_tokens: Tokens that close a chunk, derived from ``flush``.
        idle_ms: Milliseconds without a record that close one, derived from ``flush``.
        max_age_ms: ``max_age_s`` in milliseconds.
        forget_ms: ``forget_ended_after_s`` in milliseconds.

    Raises:
        ConfigError: A number is out of range, ``Tokens(n)`` is above ``max_tokens``, or names of
            headers are empty, repeated or too long.
    """

    max_tokens: int = 5000
    split_on: Boundary = Boundary.RECORD
    flush: FlushTrigger | None = None
    max_age_s: float = 0.0
    max_chunk_bytes: int = 900_000
    max_chunk_records: int = 10_000
    carry_headers: tuple[str, ...] = ()
    deduplicate_records: int = 0
    forget_ended_after_s: float = 0.0
    flush_tokens: int = field(init=False, compare=False)
    idle_ms: int = field(init=False, compare=False)
    max_age_ms: int = field(init=False, compare=False)
    forget_ms: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("max_tokens", "max_chunk_bytes", "max_chunk_records"):
            if getattr(self, name) < 1:
                message = f"{name} must be at least 1, not {getattr(self, name)}"
                raise ConfigError(message)
        for name in ("max_age_s", "deduplicate_records", "forget_ended_after_s"):
            if getattr(self, name) < 0:
                message = f"{name} must be 0 (never) or more, not {getattr(self, name)}"
                raise ConfigError(message)
        self._check_headers()
        if self.flush is None:
            object.__setattr__(self, "flush", Tokens(self.max_tokens))
        object.__setattr__(self, "flush_tokens", self._checked_flush_tokens())
        object.__setattr__(self, "idle_ms", _milliseconds(self.idle_s))
        object.__setattr__(self, "max_age_ms", _milliseconds(self.max_age_s))
        object.__setattr__(self, "forget_ms", _milliseconds(self.forget_ended_after_s))

    @property
    def idle_s(self) -> float:
        """Seconds without a record that close a chunk; 0 is never."""
        return self.flush.seconds if isinstance(self.flush, OrIdle) else 0.0

    def _check_headers(self) -> None:
        names = self.carry_headers
        if "" in names or len(set(names)) < len(names):
            message = f"carry_headers must be names, each once, not {','.join(names)!r}"
            raise ConfigError(message)
        if len(json.dumps(names)) > _MAX_HEADER_NAMES_BYTES:
            message = (
                f"carry_headers must take at most {_MAX_HEADER_NAMES_BYTES} bytes in a chunk's "
                f"policy, not {len(json.dumps(names))}"
            )
            raise ConfigError(message)

    def _checked_flush_tokens(self) -> int:
        if isinstance(self.flush, OrIdle):
            if self.flush.seconds <= 0:
                message = f"OrIdle({self.flush.seconds}) must be above 0; use Tokens for no idle"
                raise ConfigError(message)
            return self.max_tokens
        count = self.flush.n if self.flush is not None else self.max_tokens
        if not 1 <= count <= self.max_tokens:
            message = f"Tokens({count}) must be from 1 to max_tokens, {self.max_tokens}"
            raise ConfigError(message)
        return count


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000) if seconds else NEVER_MS
