"""The real protocol keeps its promises in thousands of histories; see ``make simulate``."""

import random

from tests.simulation.history import draw
from tests.simulation.mutations import applied
from tests.simulation.playing import explained, first_failure, play, shrink, traced, undisturbed
from tests.simulation.scheduler import Fate
from tests.simulation.state_mutations import low_water_off_by_one

HISTORIES = 3000


def test_thousands_of_histories_keep_every_promise():
    seed = first_failure(range(HISTORIES))
    assert seed is None, explained(seed)


def test_history_of_a_seed_is_always_the_same():
    with undisturbed():
        assert [traced(draw(seed)) for seed in range(30)] == [
            traced(draw(seed)) for seed in range(30)
        ]


def test_any_part_of_a_history_is_a_history():
    rng = random.Random(7)  # noqa: S311
    with undisturbed():
        for seed in range(100):
            history = draw(seed)
            part = [action for action in history.actions if rng.random() < 0.5]
            assert play(history._replace(actions=part)) is None


def test_failing_history_shrinks_to_a_short_trace():
    with applied(low_water_off_by_one.__name__), undisturbed():
        history = draw(first_failure(range(10)))
        smallest = shrink(history)
        trace = traced(smallest).splitlines()
    assert "VIOLATION" in trace[-1]
    assert len(trace) <= 40
    assert len(smallest.actions) < len(history.actions)


def test_histories_are_about_every_fault():
    with undisturbed():
        told = "\n".join(traced(draw(seed)) for seed in range(400))
    for sign in (
        *(fate.value for fate in Fate if fate is not Fate.DONE),
        "CRASHES",
        "PAUSES",
        "RESTARTS",
        "is told to stop",
        "transaction times out",
        "abort marker",
        "network late:",
        "shows an old offset",
        "writes to the changelog in a transaction",
        "now starts at",
        "FencedError",
        "TooLargeError",
        "AgainError",
        "(open transaction)",
        "huge",
    ):
        assert sign in told, f"no history has: {sign}"
