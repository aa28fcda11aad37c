"""Histories played, cut down when they fail, printed."""

import gc
import logging
from contextlib import contextmanager

from tests.simulation.drain import drain
from tests.simulation.history import draw
from tests.simulation.oracle import ViolationError
from tests.simulation.scheduler import Fate
from tests.simulation.world import NAMES, World

#: Histories between two collections of garbage: they leave cycles, and looking for them all the
#: time costs a quarter of the speed.
_COLLECT_EVERY = 500


def play(history, trace=None):
    """Play a history to its end and return what it violates, ``None`` if nothing."""
    world = World(history, trace)
    try:
        for action in history.actions:
            world.do(action)
        drain(world, history.ending)
    except ViolationError as violation:
        world.say("VIOLATION:", violation)
        return str(violation)
    finally:
        for worker in world.live():
            world.kill(worker)
    if world.failures:
        world.say("VIOLATION:", repr(world.failures[0]))
        return f"a task failed: {world.failures[0]!r}"
    return None


def kind_of(violation):
    """Return what a violation is, without its numbers and names: what a cut history must keep."""
    if violation is None:
        return None
    words = violation.split(":")[0].split("session")[0].split()
    return " ".join(word for word in words if word.isalpha() and len(word) > 1)


def shrink(history):
    """Return the smallest part of a failing history that fails in the same way."""
    wanted = kind_of(play(history))

    def fails(candidate):
        return kind_of(play(candidate)) == wanted

    smaller = True
    while smaller:
        smaller = False
        for candidate in _simpler(history):
            if fails(candidate):
                history, smaller = candidate, True
                break
        else:
            shorter = _without_actions(history, fails)
            smaller = len(shorter.actions) < len(history.actions)
            history = shorter
    return history


def _simpler(history):
    scripts = history.scripts
    for n in range(len(scripts) if len(scripts) > 1 else 0):
        yield history._replace(scripts=scripts[:n] + scripts[n + 1 :])
    for n, script in enumerate(scripts):
        others = scripts[:n], scripts[n + 1 :]
        for m, line in enumerate(script):
            yield history._replace(scripts=[*others[0], script[:m] + script[m + 1 :], *others[1]])
            plain = line._replace(is_hidden=False, leaves_hole=False, steps_back=False)
            if plain != line:
                changed = [*script[:m], plain, *script[m + 1 :]]
                yield history._replace(scripts=[*others[0], changed, *others[1]])
    if any(history.skews_ms):
        yield history._replace(skews_ms=(0,) * len(NAMES))
    for n, action in enumerate(history.actions):
        if action.fate is not Fate.DONE:
            calm = action._replace(fate=Fate.DONE)
            yield history._replace(actions=[*history.actions[:n], calm, *history.actions[n + 1 :]])


def _without_actions(history, fails):
    size = max(1, len(history.actions) // 2)
    while size:
        n = 0
        while n < len(history.actions):
            candidate = history._replace(actions=history.actions[:n] + history.actions[n + size :])
            if fails(candidate):
                history = candidate
            else:
                n += size
        size //= 2
    return history


def traced(history):
    """Play a history and return what happened, line by line."""
    trace = []
    play(history, trace)
    return "\n".join(trace)


@contextmanager
def undisturbed():
    """Keep garbage collection and the workers' log out of the way."""
    logger, was_collecting = logging.getLogger("processor"), gc.isenabled()
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    gc.disable()
    try:
        yield
    finally:
        logger.setLevel(level)
        if was_collecting:
            gc.enable()


def first_failure(seeds, **about):
    """Return the first seed whose history fails, ``None`` if none does."""
    with undisturbed():
        for n, seed in enumerate(seeds):
            if play(draw(seed, **about)) is not None:
                return seed
            if n % _COLLECT_EVERY == _COLLECT_EVERY - 1:
                gc.collect()
    return None


def explained(seed, **about):
    """Return the shortest trace that a failing seed's history can be cut down to."""
    with undisturbed():
        return f"seed {seed}, cut down:\n{traced(shrink(draw(seed, **about)))}"
