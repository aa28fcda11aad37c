import pytest
from aiokafka.errors import TopicAuthorizationFailedError

from processor.core.errors import ConfigError, StateError, UnreachableError
from processor.doctor.examine import noted
from processor.doctor.finding import Level
from tests.unit.doctor.facts import SETTINGS


def note_of(error):
    """Return the only finding that ``error`` leaves."""
    findings = []
    with noted(findings, SETTINGS, "here"):
        raise error
    [finding] = findings
    return finding


@pytest.mark.parametrize("kind", [ConfigError, StateError, UnreachableError])
def test_what_keeps_us_from_looking_is_a_finding(kind):
    assert note_of(kind("it is so; do that; or this")) == (
        Level.BREAKS,
        "here",
        "it is so",
        "do that; or this",
    )


def test_right_that_is_missing_to_look_is_named():
    finding = note_of(TopicAuthorizationFailedError("records"))
    assert finding.what == "User:ANONYMOUS lacks Describe on topic records"
    assert "kafka-acls.sh" in finding.remedy


def test_brokers_that_are_too_old_to_tell_are_noted():
    assert note_of(NotImplementedError()).level is Level.NOTE


def test_other_errors_are_not_held_back():
    with pytest.raises(ZeroDivisionError):
        note_of(ZeroDivisionError())
