"""What is forgiven a worker that ends: little, and never in silence."""

import sys
import time
from types import SimpleNamespace

import pytest

from tests.chaos.crew import Crew

READY = "print('partition is ready', flush=True);"
ON_TERM = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit({}));"
WAIT = "print('up', flush=True); time.sleep(60)"


@pytest.fixture
def crew_of(tmp_path):
    """Return a function that makes a crew of one worker, which runs this code."""
    deployment = SimpleNamespace(environment=dict, folder=tmp_path, workers=[])

    def make(code):
        crew = Crew(deployment, {0: "nowhere"}, (sys.executable, "-c", code))
        crew.start(0)
        return crew

    yield make
    for worker in deployment.workers:
        worker.kill()


def ended_by_itself(crew):
    [worker] = crew._deployment.workers  # noqa: SLF001
    while worker.is_running():
        time.sleep(0.01)
    crew.look_after()
    assert len(crew._deployment.workers) == 2  # noqa: SLF001 - another one is in its place
    return crew


def stopped(crew):
    [worker] = crew._deployment.workers  # noqa: SLF001
    while "up" not in worker.output():
        time.sleep(0.01)
    crew.stop(0)
    assert crew.present() == []
    return crew


def test_worker_that_finds_no_broker_in_an_outage_is_forgiven_and_counted(crew_of):
    crew = crew_of("raise SystemExit(69)")
    crew.outage_begins([0])
    crew.outage_ends([0])
    assert not ended_by_itself(crew).failures
    assert crew.exits == {"69, no broker at the start": 1}


def test_worker_that_finds_no_broker_though_there_was_one_is_a_failure(crew_of):
    [failure] = ended_by_itself(crew_of("print('last words'); raise SystemExit(69)")).failures
    assert failure.startswith("worker 0 ended with 69 by itself")
    assert "last words" in failure


@pytest.mark.parametrize("code", ["raise SystemExit(70)", f"{READY} raise SystemExit(69)"])
def test_outage_excuses_neither_another_status_nor_a_worker_that_had_begun(crew_of, code):
    crew = crew_of(code)
    crew.outage_begins([0])
    assert len(ended_by_itself(crew).failures) == 1


def test_worker_that_ends_with_0_though_nobody_asked_it_to_is_a_failure(crew_of):
    assert len(ended_by_itself(crew_of("")).failures) == 1


def test_worker_that_stops_when_asked_to_is_well(crew_of):
    crew = stopped(crew_of(ON_TERM.format(0) + WAIT))
    assert (crew.failures, crew.exits) == ([], {"0, stopped by us": 1})


@pytest.mark.parametrize(
    ("status", "is_outage", "failures"), [(1, True, 0), (1, False, 1), (70, True, 1)]
)
def test_stop_that_fails_is_forgiven_in_an_outage_alone(crew_of, status, is_outage, failures):
    crew = crew_of(ON_TERM.format(status) + WAIT)
    if is_outage:
        crew.outage_begins([0])
    assert len(stopped(crew).failures) == failures


def test_worker_that_we_kill_is_no_failure(crew_of):
    crew = crew_of("import time; time.sleep(60)")
    crew.kill(0)
    crew.look_after()
    assert (crew.failures, crew.exits) == ([], {"-9, killed by us": 1})
