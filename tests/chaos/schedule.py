"""Which faults come when: drawn from a seed before anything starts, so that it can be told again.

Kinds come as cards from a shuffled deck: each kind turns up before the deck is dealt anew, and what
is in it twice comes twice as often. A target has one fault at a time; different ones overlap.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

Kind = Literal[
    "worker kill",  # kill -9, and a new one in its place
    "worker freeze",  # stopped past the session timeout, then a zombie
    "worker stop",  # SIGTERM, and a new one in its place
    "worker join",  # one more for a while, ended by SIGTERM
    "cut",  # nothing passes between a worker and the brokers; all of it comes late
    "deafness",  # the brokers hear a worker, their answers come late
    "reset",  # connections of a worker break, and new ones are refused
    "clock forward",
    "clock back",
    "broker kill",  # kill -9, and started again
    "broker freeze",
]
WORKERS: Final = 3
"""Slots that hold a worker all the time."""
SLOTS: Final = 5
"""With those of workers that join for a while."""

# Longer than the tests' session timeout of 3 s where a worker is to lose its partitions, and for
# some longer than a commit may take (15 s).
_FOR_S: Final[dict[Kind, tuple[tuple[float, float], ...]]] = {
    "worker kill": ((0, 1), (3, 8)),
    "worker freeze": ((4, 8), (8, 20)),
    "worker stop": ((0, 3),),
    "worker join": ((6, 20),),
    "cut": ((1, 3), (4, 8), (16, 25)),
    "deafness": ((1, 3), (4, 8), (16, 25)),
    "reset": ((0.5, 3), (4, 10)),
    "clock forward": ((0, 0),),
    "clock back": ((0, 0),),
    "broker kill": ((0, 2),),
    "broker freeze": ((1, 4), (5, 10), (17, 20)),
}
_DECK: Final = (*get_args(Kind), "worker kill", "worker kill", "worker freeze", "worker stop")
_BETWEEN_S: Final = (1.0, 9.0)
_FIRST_S: Final = 3.0
# What a target needs after its fault before it is whole again: to start, to join, to be in sync.
_WORKER_REST_S: Final = 4.0
_BROKER_REST_S: Final = 12.0
_QUIET_END_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: when (seconds from the start), what, to whom, and for how long."""

    at_s: float
    kind: Kind
    target: int
    """A worker's slot from 0, or a broker's number from 0."""
    for_s: float

    @property
    def is_brokers(self) -> bool:
        return self.kind.startswith("broker")

    def __str__(self) -> str:
        whom = f"{'broker' if self.is_brokers else 'worker'} {self.target}"
        return f"{self.at_s:7.1f} s  {self.kind:14}  {whom}  for {self.for_s:.1f} s"


def draw(seconds: float, seed: int, *, brokers: int = 1) -> list[Fault]:
    """Return the faults of a run, all over some time before its end.

    The same arguments give the same faults, and more seconds the same ones and more.
    """
    rng = random.Random(f"faults {seed} {brokers}")  # noqa: S311 - chance, nothing secret
    free_at = dict.fromkeys(range(SLOTS), 0.0)
    broker_free_at = 0.0
    faults: list[Fault] = []
    at_s = _FIRST_S
    for kind in _cards(rng):
        slots = range(WORKERS, SLOTS) if kind == "worker join" else range(WORKERS)
        for_s = round(rng.uniform(*rng.choice(_FOR_S[kind])), 1)
        if kind.startswith("broker"):
            # One at a time: of three brokers two must be left to agree.
            at_s, target = max(at_s, broker_free_at), rng.randrange(brokers)
            broker_free_at = at_s + for_s + _BROKER_REST_S
        else:
            at_s = max(at_s, min(free_at[it] for it in slots))
            target = rng.choice([it for it in slots if free_at[it] <= at_s])
            free_at[target] = at_s + for_s + _WORKER_REST_S
        if at_s > seconds - _QUIET_END_S:
            return faults
        if at_s + for_s <= seconds - _QUIET_END_S:
            faults.append(Fault(round(at_s, 1), kind, target, for_s))
        at_s += rng.uniform(*_BETWEEN_S)
    return faults


def _cards(rng: random.Random) -> Iterator[Kind]:
    while True:
        yield from rng.sample(_DECK, len(_DECK))
