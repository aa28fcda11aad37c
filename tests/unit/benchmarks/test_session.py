"""A peer that fails costs its own figure; one of ours costs all."""

import asyncio

import pytest

from benchmarks import session
from benchmarks.contender import Contender, ContenderError, Host, Source
from benchmarks.judging import Expected
from benchmarks.measure import Figures

FIGURES = Figures(1_000, 1e3, 1e3, 1e3, 1e3, 1e3, 1.0, 90.0)


async def nothing(_run):
    return "as it must be"


def contender(*, fails=False):
    return Contender("fails" if fails else "works", list, dict, nothing, nothing, nothing)


async def fake_measure(given, run):
    if given.about == "fails":
        message = f"{run.name} ended with status 1\n  and said why"
        raise ContenderError(message)
    return FIGURES


@pytest.fixture
def measuring(monkeypatch, tmp_path):
    async def fake_source(self, count):
        return Source("records", count, count, Expected({}, {}, {}))

    monkeypatch.setattr(session, "measure", fake_measure)
    monkeypatch.setattr(session.Session, "_source", fake_source)
    return session.Session(Host("nowhere", None), tmp_path, [].append)


def test_all_run_in_turns(measuring):
    contenders = {"passthrough": contender(), "worker": contender()}
    rows = asyncio.run(measuring.throughput(contenders, 2, 1_000))
    assert [(row.run, row.name) for row in rows] == [
        (1, "passthrough"),
        (1, "worker"),
        (2, "passthrough"),
        (2, "worker"),
    ]


def test_peer_that_fails_is_named_and_the_rest_is_measured(measuring):
    contenders = {"quix": contender(fails=True), "worker": contender()}
    rows = asyncio.run(measuring.throughput(contenders, 1, 1_000))
    assert [row.name for row in rows] == ["worker"]
    [line] = measuring.failed
    assert line.startswith("quix, once: ContenderError")
    assert line.endswith("ended with status 1")


def test_failure_of_ours_is_an_error(measuring):
    with pytest.raises(ContenderError, match="and said why"):
        asyncio.run(measuring.throughput({"worker": contender(fails=True)}, 1, 1_000))
