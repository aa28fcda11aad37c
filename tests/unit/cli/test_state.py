import asyncio

import click
import pytest
from click.testing import CliRunner

from processor.cli import stopped
from processor.cli.partition_view import PartitionView, open_counts
from processor.cli.state import state
from processor.core.errors import ConfigError
from processor.core.records import Record
from processor.core.session_state import SessionState
from processor.kafka.group_description import GroupDescription, Member
from processor.protocol.port import Survey
from processor.settings import Settings


def held(session, next_offset, open_records=0):
    records = tuple(Record(session, b"x", 1, number) for number in range(open_records))
    return SessionState(session, 2, b"d" * 32, next_offset, records=records)


def test_open_are_the_records_of_the_entry_and_those_of_the_log_behind_it():
    states = {it.session: it for it in (held("a", 5), held("b", 7, 2), held("c", 9))}
    log = [
        (4, b"a", b"in a chunk"),
        (5, b"a", b"open"),
        (6, b"b", b"in the entry"),
        (7, b"b", b"open"),
        (8, b"c", b"in a chunk"),
        (9, b"a", None),
        (10, b"new", b"open"),
        (11, None, b"a dead letter"),
        (12, b"\xff", b"a dead letter"),
    ]
    assert open_counts(states, log) == {"a": 1, "b": 3, "new": 1}


def view(**fields):
    defaults = {
        "topic": "records",
        "number": 3,
        "entry": None,
        "states": {"a": held("a", 5)},
        "survey": Survey(4, 1, 9, 5),
        "open_counts": {"a": 2, "new": 1},
        "problem": None,
    }
    return PartitionView(**defaults | fields)


def test_partition_counts_sessions_that_have_open_records_alone():
    row = view().as_json()
    assert (row["sessions"], row["open_sessions"], row["open_records"]) == (2, 2, 3)
    assert (row["committed"], row["log_start"], row["log_end"]) == (5, 1, 9)
    assert row["low"] is None


def test_session_without_an_entry_stands_before_its_first_chunk():
    known, new = (view().session_as_json(name) for name in ("a", "new"))
    assert (known["t"], known["next_offset"], known["open_records"]) == (2, 5, 2)
    assert (new["t"], new["next_offset"], new["open_records"]) == (0, 0, 1)
    assert view().session_as_json("nobody") is None


@pytest.mark.parametrize("verb", [["reset", "--yes"], ["rebuild"]])
@pytest.mark.parametrize("args", [[], ["--all", "--partition", "0"]])
def test_verbs_that_change_state_must_be_told_of_which_partitions(verb, args):
    result = CliRunner().invoke(state, [*verb, "--app-id", "a", *args])
    assert result.exit_code == 2
    assert "--partition N, or all of them with --all" in result.stderr


@pytest.fixture
def refused(monkeypatch):
    """Ask for members of a group that is ``told`` so, or raises."""

    def ask(told):
        async def described_group(_settings, group):
            assert group == "a"
            if isinstance(told, Exception):
                raise told
            return GroupDescription(0, "Stable", told, 0)

        monkeypatch.setattr(stopped, "described_group", described_group)
        asyncio.run(stopped.refuse_members(Settings(app_id="a"), "reset"))

    return ask


def test_workers_that_run_are_named_before_anything_is_changed(refused):
    refused(())
    with pytest.raises(click.ClickException, match=r"2 members \(a-1 at /h, '.x1b at /h'\)"):
        refused((Member("a-1", "/h", None), Member("\x1b", "/h", None)))


def test_group_of_brokers_too_old_to_tell_is_taken_for_no_empty_one(refused):
    with pytest.raises(ConfigError, match=r"older than Apache Kafka 2\.4"):
        refused(NotImplementedError())
