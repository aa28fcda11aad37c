import json

import pytest
from click.testing import CliRunner

import processor.cli.doctor
from processor.cli.doctor import doctor, summary, table
from processor.core.errors import ConfigError, UnreachableError
from processor.doctor.finding import Finding, Level

FINDINGS = [
    Finding(Level.BREAKS, "records", "is compacted", "correct it with:\n  kafka-configs.sh"),
    Finding(Level.OK, "clocks", "agree"),
]
ENV = {"PROCESSOR_APP_ID": "a", "PROCESSOR_TOKEN_COUNTER": "chars_over_four"}


pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


def run(*args, **env):
    return CliRunner().invoke(doctor, args, env=ENV | env, standalone_mode=False)


@pytest.fixture
def examined(monkeypatch):
    """Have the examination find what a test says."""
    found = []

    async def examine(settings, sample_size, clock):
        assert settings.app_id == "a"
        return found

    monkeypatch.setattr(processor.cli.doctor, "examine", examine)
    return found


def test_table_has_level_place_and_finding_with_the_remedy_below():
    assert table(FINDINGS) == [
        "breaks  records  is compacted",
        "        correct it with:",
        "          kafka-configs.sh",
        "ok      clocks   agree",
    ]
    assert table([]) == []


def test_summary_counts_each_level():
    assert summary(FINDINGS) == "breaks: 1, warn: 0, note: 0, ok: 1"


@pytest.mark.parametrize(
    ("level", "code"), [(Level.BREAKS, 1), (Level.WARN, 0), (Level.NOTE, 0), (Level.OK, 0)]
)
def test_only_a_broken_promise_fails(examined, level, code):
    examined.append(Finding(level, "records", "what"))
    done = run()
    assert done.return_value == code, done.output
    assert f"{level.value}: 1" in done.output


def test_json_is_one_document_with_all_findings(examined):
    examined += FINDINGS
    done = run("--output", "json")
    said = json.loads(done.stdout)
    assert said["ok"] is False
    assert said["findings"][1] == {"level": "ok", "where": "clocks", "what": "agree", "remedy": ""}


def test_silent_broker_is_told_from_wrong_settings():
    assert isinstance(run(KAFKA_BOOTSTRAP_SERVERS="127.0.0.1:1").exception, UnreachableError)
    assert isinstance(run(PROCESSOR_TOKEN_COUNTER="words").exception, ConfigError)  # noqa: S106 - no credential
