"""Histories, drawn from seeds: what producers write, and what happens in which order."""

import random
from itertools import accumulate
from typing import NamedTuple

from tests.simulation.scheduler import Fate
from tests.simulation.world import NAMES, Action

WEIGHTS = {
    "append": 8,
    "advance": 4,
    "marker": 5,
    "reveal": 2,
    "deliver": 2,
    "timeout": 1,
    "rebalance": 1,
    "crash": 0.6,
    "start": 0.8,
    "pause": 0.8,
    "resume": 1.6,
    "stop": 0.6,
    "learn": 1.6,
    "restart": 0.4,
    "stale": 0.6,
    "foreign": 0.3,
    "retain": 1,
}
_KINDS, _BOUNDS = list(WEIGHTS), list(accumulate(WEIGHTS.values()))
_WORKERS = (0, 0, 0, 1, 1, 2)
_PICKS = 9973
_HUGE_BYTES = 8000
_TWICE_SHARE = 0.25
_FORGET_SHARE = 0.2
_END_SHARE = 0.3
_CALM = (Fate.DONE,)
ANSWERS_LOST = (Fate.ANSWER_LOST, *_CALM * 10)
RESENT = (Fate.RESENT, Fate.DONE)
#: What a history's requests may meet: half of the histories have a calm network, in the others
#: some requests meet a fate, of one kind or of all.
NETWORKS = (
    *[_CALM] * 7,
    *[(it, *_CALM * 7) for it in (Fate.LOST, Fate.LATE, Fate.SILENT)],
    ANSWERS_LOST,
    RESENT,
    *[(*Fate, *_CALM * 30)] * 2,
)


class Line(NamedTuple):
    """A record that a producer will append, and when.

    Attributes:
        kind: ``record``, ``end``, ``huge``, or ``dead`` for one without a session.
        gap_s: Seconds after the one before it.
        is_hidden: Part of a transaction that is open at first.
        leaves_hole: A marker, or an aborted record, stands before it.
        steps_back: Its timestamp is older than that of the one before it.
        record_id: By which its producer knows it; sent twice, it has it twice.
    """

    key: bytes | None
    tokens: int
    kind: str
    gap_s: float
    is_hidden: bool
    leaves_hole: bool
    steps_back: bool
    record_id: bytes | None = None

    def value(self, offset):
        if self.kind == "end":
            return None
        if self.kind == "huge":
            return b"w" * _HUGE_BYTES
        words = " ".join([f"{offset}"] * self.tokens).encode()
        return b'"%b"' % words if offset % 3 else words + b"\xff" * (offset % 2)

    def told(self):
        return f"key={self.key} {self.kind} {self.tokens}"


class History(NamedTuple):
    """All that decides what happens.

    Attributes:
        scripts: Of each partition, what producers append.
        actions: What happens, in order.
        ending: How it is brought to its end, see ``drain.py``.
        skews_ms: How far each worker's clock is off.
        max_replay: Records after which open sessions are checkpointed.
        learns_late: A worker hears of a rebalance only by an action of its own.
        remembered: Offsets in which a record with the id of another is left out.
        forget_ms: After so long a session that has ended begins anew; ``None`` for never.
    """

    scripts: list
    actions: list
    ending: int
    skews_ms: tuple
    max_replay: int
    learns_late: bool
    remembered: int = 0
    forget_ms: int | None = None


class Theme(NamedTuple):
    """What a history is about; left to chance unless a test asks for one.

    Attributes:
        network: What its requests may meet.
        plot: How its actions are drawn: ``any``, ``there and back`` or ``quiet``.
        skew_ms: How far clocks may be off.
        backward: Share of records whose timestamps step back.
        learns_late: A worker hears of a rebalance only by an action of its own.
        forgets: Sessions end often and are forgotten soon; now and then even if not asked for.
    """

    network: tuple
    plot: str
    skew_ms: int
    backward: float
    learns_late: bool
    forgets: bool = False


def draw_theme(rng):
    # Clocks that are off and a log that steps back add up, and the grace covers only one of them.
    skew_ms, backward = rng.choice(((0, 0), (4000, 0), (0, 0.05), (0, 0.4)))
    return Theme(
        rng.choice(NETWORKS), rng.choice(("any", *PLOTS)), skew_ms, backward, rng.random() < 0.3
    )


def draw(seed, **about):
    """Return the history of a seed, about what is asked for."""
    rng = random.Random(seed)  # noqa: S311 - to be drawn again, not to be secret
    theme = draw_theme(rng)._replace(**about)
    scripts = [_draw_script(rng, theme.backward) for _ in range(1 if rng.random() < 0.8 else 2)]
    draw_round = PLOTS[theme.plot]
    actions = []
    for _ in range(rng.randint(4, 20)):
        actions += draw_round(rng, theme.network)
    skews_ms = tuple(rng.choice((0, -theme.skew_ms, theme.skew_ms)) for _ in NAMES)
    max_replay = rng.choice((2, 3, 5, 1000))
    history = History(scripts, actions, rng.randrange(4), skews_ms, max_replay, theme.learns_late)
    history = _with_ids(history, rng) if rng.random() < _TWICE_SHARE else history
    return _with_ends(history, rng) if rng.random() < _FORGET_SHARE or theme.forgets else history


def _with_ids(history, rng):
    """Return the history with producers that send twice and workers that leave repeats out."""
    scripts = [
        [line._replace(record_id=rng.choice((None, b"1", b"2", b"3"))) for line in script]
        for script in history.scripts
    ]
    return history._replace(scripts=scripts, remembered=rng.choice((1, 3, 8)))


def _with_ends(history, rng):
    """Return the history with sessions that end often and are forgotten soon."""
    scripts = [
        [
            line._replace(kind="end")
            if line.kind == "record" and rng.random() < _END_SHARE
            else line
            for line in script
        ]
        for script in history.scripts
    ]
    return history._replace(scripts=scripts, forget_ms=rng.choice((500, 3000, 9000)))


def _draw_round(rng, network):
    """Return a few things that happen, then steps of one worker."""
    kinds = rng.choices(_KINDS, cum_weights=_BOUNDS, k=rng.randint(1, 5))
    actions = [_draw_action(rng, kind, rng.choice(_WORKERS)) for kind in kinds]
    return actions + _draw_steps(rng, network, rng.choice(_WORKERS), (1, 2, 4, 8, 16, 32))


def _draw_there_and_back(rng, network):
    """Return steps in which a partition goes to another worker and comes back to its first."""
    number = rng.randrange(2)
    return [
        *_draw_round(rng, network),
        Action("rebalance", 1, number, 0),
        *[Action("learn", 0, 0, 0)] * rng.randrange(2),
        *_draw_steps(rng, network, 0, (1, 2, 4, 8)),
        Action("pause", 0, 0, 0),
        _draw_action(rng, rng.choice(("append", "advance")), 0),
        *_draw_steps(rng, network, 1, (1, 16, 32)),
        Action("rebalance", 0, number, 0),
        Action("resume", 0, 0, 0),
        *_draw_steps(rng, network, 0, (1, 4, 8, 40)),
    ]


def _draw_quiet(rng, network):
    """Return steps of workers that keep up, as time passes and records come."""
    kinds = rng.choices(_QUIET, k=rng.randint(1, 3))
    actions = [_draw_action(rng, kind, rng.choice(_WORKERS)) for kind in kinds]
    return actions + _draw_steps(rng, network, 0, (4, 8, 16))


def _draw_steps(rng, network, worker, counts):
    below = rng.random  # three times as fast as choice() and randrange()
    return [
        Action(
            "go",
            worker,
            0,
            int(below() * _PICKS),
            network[int(below() * len(network))],
        )
        for _ in range(rng.choice(counts))
    ]


def _draw_action(rng, kind, worker):
    return Action(kind, worker, rng.randrange(2), rng.randrange(_PICKS))


PLOTS = {
    "any": _draw_round,
    "there and back": _draw_there_and_back,
    "quiet": _draw_quiet,
}
_QUIET = (*["append", "advance"] * 5, "reveal", "crash", "start", "rebalance")


def _draw_script(rng, backward):
    keys = rng.choice((b"abc", b"ab", b"aab", b"aaab"))
    gaps = rng.choice(((0, 0, 1, 2, 4, 8, 9, 11, 14), (0, 0, 0, 1, 2)))
    script = []
    for _ in range(rng.randint(3, 12)):
        kind = rng.choices(("record", "end", "dead", "huge"), (84, 8, 5, 3))[0]
        script.append(
            Line(
                rng.choice((None, b"", b"\xff")) if kind == "dead" else bytes((rng.choice(keys),)),
                rng.choice((1, 2, 2, 3, 4, 9)),
                kind,
                rng.choice(gaps),
                rng.random() < 0.08,
                rng.random() < 0.08,
                rng.random() < backward,
            )
        )
    return script
