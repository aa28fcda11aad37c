import io
import json
import logging
import sys

import pytest

from processor.ops.logging import Repeats, add_field, configure_logging
from processor.settings import Settings


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def log_to(monkeypatch, quiet_log):
    """Set up the log on a stderr of the test's own; afterwards it is put back."""

    def set_up(stderr=None, **settings):
        stderr = stderr or io.StringIO()
        monkeypatch.setattr(sys, "stderr", stderr)
        configure_logging(Settings(**settings))
        return stderr

    return set_up


def test_json_event_is_one_line_with_its_fields(log_to):
    out = log_to(log_format="json")
    logging.getLogger("processor.x").info(
        "opened %s\nnow", "it", extra={"partition": 3, "offset": 0}
    )
    (line,) = out.getvalue().splitlines()
    event = json.loads(line)
    time = event.pop("time")
    assert time.endswith("+00:00")
    assert event == {
        "level": "info",
        "logger": "processor.x",
        "message": "opened it\nnow",
        "partition": 3,
        "offset": 0,
    }


def test_json_event_carries_what_has_no_json_form_and_the_traceback(log_to):
    out = log_to(log_format="json")
    try:
        raise ValueError("bad")  # noqa: EM101, TRY301  # the fault itself
    except ValueError:
        logging.getLogger("processor.x").exception("failed", extra={"what": {1}})
    (line,) = out.getvalue().splitlines()
    event = json.loads(line)
    assert event["what"] == "{1}"
    assert event["exception"].endswith("ValueError: bad")


def test_console_event_is_one_line_with_its_fields(log_to):
    out = log_to(log_format="console")
    logging.getLogger("processor.x").warning("odd\nthing", extra={"topic": "records"})
    (line,) = out.getvalue().splitlines()
    assert line.endswith(r" WARNING processor.x: odd\nthing topic=records")


def test_console_is_coloured_on_a_terminal_only(log_to):
    for stderr, is_coloured in ((Terminal(), True), (io.StringIO(), False)):
        out = log_to(stderr, log_format="console")
        logging.getLogger("processor.x").error("red")
        assert ("\033[" in out.getvalue()) is is_coloured


def test_format_follows_the_terminal_when_not_set(log_to):
    for stderr, log_format in ((Terminal(), "console"), (io.StringIO(), "json")):
        log_to(stderr)
        assert Settings().log_format == log_format


def test_level_is_kept(log_to):
    out = log_to(log_format="json", log_level="warning")
    logging.getLogger("processor.x").info("quiet")
    logging.getLogger("processor.x").warning("loud")
    assert "quiet" not in out.getvalue()
    assert "loud" in out.getvalue()


@pytest.mark.parametrize("library", ["aiokafka.consumer.fetcher", "faust.app", "mode.services"])
def test_libraries_are_quiet_even_at_debug(log_to, library):
    out = log_to(log_format="json", log_level="debug")
    logging.getLogger("processor.x").debug("ours")
    logging.getLogger(library).info("theirs")
    logging.getLogger(library).warning("trouble")
    assert "ours" in out.getvalue()
    assert "theirs" not in out.getvalue()
    assert "trouble" in out.getvalue()
    assert not logging.getLogger(library).isEnabledFor(logging.DEBUG)


def event_of(library, created, message="no %s", argument="b"):
    record = logging.makeLogRecord(
        {"name": library, "levelno": logging.ERROR, "msg": message, "args": (argument,)}
    )
    record.created = created
    return record


def test_library_that_repeats_itself_is_heard_once_in_a_while():
    """Symptom: a broker that was away for a minute filled the log."""
    repeats = Repeats()
    events = [event_of("aiokafka", at / 10, argument=str(at)) for at in range(205)]
    passed = [it for it in events if repeats.filter(it)]
    assert [it.created for it in passed] == [0, 10, 20]
    assert [getattr(it, "held_back", None) for it in passed] == [None, 99, 99]


def test_other_messages_and_our_own_pass_meanwhile():
    repeats = Repeats()
    assert repeats.filter(event_of("aiokafka", 0))
    assert repeats.filter(event_of("aiokafka", 0, message="another %s"))
    assert repeats.filter(event_of("faust.worker", 0))
    assert all(repeats.filter(event_of("processor.x", 0)) for _ in range(3))


def test_field_of_every_event_is_as_it_is_at_the_time(log_to):
    out, generations = log_to(log_format="json"), [1]
    add_field("generation", lambda: generations[-1])
    logging.getLogger("processor.x").info("one")
    generations.append(2)
    logging.getLogger("processor.x").info("two")
    assert [json.loads(it)["generation"] for it in out.getvalue().splitlines()] == [1, 2]
