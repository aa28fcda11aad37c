"""The simulation can fail: it catches every rule of the protocol that is left out or bent."""

import pytest

from tests.simulation import owner_mutations, state_mutations, time_mutations
from tests.simulation.mutations import MUTATIONS, applied
from tests.simulation.playing import first_failure

#: Most need a handful; the rarest some hundreds.
MOST_HISTORIES = 3000

assert owner_mutations
assert state_mutations
assert time_mutations


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutation_is_caught(name):
    mutation = MUTATIONS[name]
    seeds = range(mutation.first_seed, mutation.first_seed + MOST_HISTORIES)
    with applied(name):
        seed = first_failure(seeds, **mutation.about)
    assert seed is not None, f"{name} survives {MOST_HISTORIES} histories"
