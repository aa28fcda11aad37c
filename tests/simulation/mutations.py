"""The rules of the protocol, each left out or bent: what the simulation has to catch.

A mutation is a function that returns what to put in the place of which attribute. It bends the
real code; where the rule lives in the adapter to Kafka, the simulated client in its place.
"""

from contextlib import ExitStack, contextmanager
from typing import NamedTuple
from unittest.mock import patch

MUTATIONS = {}


class Mutation(NamedTuple):
    """A rule broken.

    Attributes:
        change: Returns what to put in the place of which attribute of what.
        about: Which histories show it soonest.
        first_seed: From where on; where seeds come to mean other histories it only takes longer.
    """

    change: object
    about: dict
    first_seed: int


def mutation(first_seed=0, **about):
    def register(function):
        MUTATIONS[function.__name__] = Mutation(function, about, first_seed)
        return function

    return register


@contextmanager
def applied(name):
    """Bend the code as the mutation of this name says."""
    with ExitStack() as stack:
        for owner, attribute, changed in MUTATIONS[name].change():
            stack.enter_context(patch.object(owner, attribute, changed))
        yield
