import json

import pytest
from click.testing import CliRunner

from processor.cli.config import config
from processor.core.errors import ConfigError, UnreachableError

pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


def invoke(*args, **env):
    return CliRunner().invoke(config, args, env=env)


def test_show_prints_value_and_origin(tmp_path):
    (tmp_path / "processor.toml").write_text("max_age_s = 9")
    lines = invoke("show", PROCESSOR_IDLE_S="3").stdout.splitlines()
    assert "PROCESSOR_IDLE_S=3.0  (environment)" in lines
    assert "PROCESSOR_MAX_AGE_S=9.0  (processor.toml)" in lines
    assert "PROCESSOR_MAX_TOKENS=5000  (default)" in lines


def test_show_gives_one_json_document():
    report = json.loads(invoke("show", "--output", "json", PROCESSOR_IDLE_S="3").stdout)
    assert report["PROCESSOR_IDLE_S"] == {"value": 3.0, "origin": "environment"}


@pytest.mark.parametrize("output", ["text", "json"])
def test_show_hides_the_password_but_not_that_there_is_one(output):
    shown = invoke("show", "--output", output, KAFKA_SASL_PASSWORD="hush").stdout  # noqa: S106  # made up
    assert "hush" not in shown
    assert "*****" in shown


def test_check_passes_settings_that_a_worker_can_start_with():
    assert invoke("check", PROCESSOR_APP_ID="a").exit_code == 0


@pytest.mark.parametrize("env", [{}, {"PROCESSOR_APP_ID": "a", "PROCESSOR_MAX_TOKENS": "0"}])
def test_check_refuses_settings_that_a_worker_can_not_start_with(env):
    assert isinstance(invoke("check", **env).exception, ConfigError)


def test_check_names_all_that_is_wrong_at_once(tmp_path):
    env = {
        "PROCESSOR_TOKEN_COUNTER": "words",
        "KAFKA_SECURITY_PROTOCOL": "SSL",
        "KAFKA_SSL_CA_LOCATION": str(tmp_path / "gone.pem"),
    }
    found = str(invoke("check", **env).exception)
    assert "PROCESSOR_APP_ID isn't set" in found
    assert "words" in found
    assert "gone.pem" in found


def test_check_with_connect_tells_a_silent_broker_from_wrong_settings():
    env = {"PROCESSOR_APP_ID": "a", "KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    found = invoke("check", "--connect", **env).exception
    assert isinstance(found, UnreachableError)
    assert "no answer from 127.0.0.1:1" in str(found)


def test_redacted_may_be_said():
    assert "*****" in invoke("show", "--redacted", KAFKA_SASL_PASSWORD="hush").stdout  # noqa: S106
