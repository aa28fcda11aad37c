"""Where each setting comes from, and what is said of one that is wrong."""

import logging

import pytest

from processor.core.errors import ConfigError
from processor.settings_loading import load_settings, load_with_origins

pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


def test_flag_beats_environment_beats_file_beats_default(tmp_path):
    file = tmp_path / "some.toml"
    file.write_text("max_tokens = 2\nidle_s = 2\nmax_age_s = 2\n")
    environ = {"PROCESSOR_MAX_TOKENS": "3", "PROCESSOR_IDLE_S": "3"}
    settings, origins = load_with_origins({"max_tokens": "4"}, environ=environ, path=file)
    found = (settings.max_tokens, settings.idle_s, settings.max_age_s, settings.clock_grace_s)
    assert found == (4, 3, 2, 5)
    fields = ("max_tokens", "idle_s", "max_age_s", "clock_grace_s")
    assert [origins[field] for field in fields] == ["flag", "environment", str(file), "default"]


def test_flag_that_is_not_given_hides_nothing():
    assert (
        load_settings({"max_tokens": None}, environ={"PROCESSOR_MAX_TOKENS": "3"}).max_tokens == 3
    )


def test_empty_variable_counts_as_not_set():
    assert (
        load_settings(environ={"KAFKA_BOOTSTRAP_SERVERS": ""}).bootstrap_servers == "localhost:9092"
    )


def test_file_of_the_folder_is_read_when_none_is_named(tmp_path):
    (tmp_path / "processor.toml").write_text("max_tokens = 2")
    assert load_settings(environ={}).max_tokens == 2


def test_unknown_key_in_the_file_names_the_file_and_the_nearest_key(tmp_path):
    file = tmp_path / "some.toml"
    file.write_text("max_token = 2")
    with pytest.raises(ConfigError, match=r"'max_token' \(.*some\.toml\).*'max_tokens'"):
        load_settings(environ={}, path=file)


def test_unknown_flag_names_the_nearest():
    with pytest.raises(ConfigError, match=r"'idle' \(flag\).*'idle_s'"):
        load_settings({"idle": 3}, environ={})


@pytest.mark.parametrize("content", [None, "max_tokens ="])
def test_file_that_can_not_be_read_is_named(tmp_path, content):
    file = tmp_path / "some.toml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=r"some\.toml"):
        load_settings(environ={}, path=file)


def test_variables_that_kubernetes_injects_are_a_warning(caplog):
    """A service named ``processor`` sets PROCESSOR_PORT in every pod of its namespace."""
    with caplog.at_level(logging.WARNING):
        settings = load_settings(environ={"PROCESSOR_PORT": "tcp://10.0.0.1:80"})
    assert settings.max_tokens == 5000
    assert "PROCESSOR_PORT" in caplog.text
    assert "nearest name is PROCESSOR_" in caplog.text


def test_misspelt_variable_names_the_nearest(caplog):
    load_settings(environ={"PROCESSOR_MAX_TOKEN": "1"})
    assert "PROCESSOR_MAX_TOKEN; the nearest name is PROCESSOR_MAX_TOKENS" in caplog.text


def test_variables_of_other_programs_pass_without_a_word(caplog):
    load_settings(environ={"KAFKA_HEAP_OPTS": "-Xmx1g", "HOME": "here"})
    assert caplog.text == ""


def test_all_bad_values_are_named_at_once():
    with pytest.raises(ConfigError, match=r"(?s)PROCESSOR_MAX_TOKENS=0.*PROCESSOR_IDLE_S=-1"):
        load_settings({"max_tokens": 0, "idle_s": -1}, environ={})


def test_what_is_wrong_in_several_ways_is_told_at_once(tmp_path):
    (tmp_path / "processor.toml").write_text("max_token = 2\nidle = 3\nmax_age_s = -1\n")
    with pytest.raises(ConfigError, match=r"(?s)'max_token'.*'idle'.*PROCESSOR_MAX_AGE_S=-1"):
        load_settings(environ={})


def test_password_is_never_shown():
    environ = {"KAFKA_SASL_PASSWORD": "hush"}
    settings = load_settings(environ=environ)
    assert settings.sasl_password.get_secret_value() == "hush"
    assert "hush" not in repr(settings) + str(settings.model_dump())
    with pytest.raises(ConfigError) as error:
        load_settings({"max_tokens": 0}, environ=environ)
    assert "hush" not in str(error.value)
    assert error.value.__context__ is None


def test_password_of_the_wrong_type_is_not_shown(tmp_path):
    file = tmp_path / "some.toml"
    file.write_text("sasl_password = 987654")
    with pytest.raises(ConfigError, match="KAFKA_SASL_PASSWORD") as error:
        load_settings(environ={}, path=file)
    assert "987654" not in str(error.value)


def test_password_can_come_from_a_file(tmp_path):
    (tmp_path / "secret").write_text("hu sh \n")
    settings, origins = load_with_origins(environ={"KAFKA_SASL_PASSWORD_FILE": "secret"})
    assert settings.sasl_password.get_secret_value() == "hu sh "
    assert origins["sasl_password"] == "environment"  # noqa: S105  # an origin


def test_password_file_that_can_not_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"'gone'.*KAFKA_SASL_PASSWORD_FILE"):
        load_settings(environ={"KAFKA_SASL_PASSWORD_FILE": "gone"})
    (tmp_path / "secret").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"'secret'.*KAFKA_SASL_PASSWORD_FILE"):
        load_settings(environ={"KAFKA_SASL_PASSWORD_FILE": "secret"})


def test_password_given_twice_is_refused():
    with pytest.raises(ConfigError, match="not both"):
        load_settings(environ={"KAFKA_SASL_PASSWORD": "a", "KAFKA_SASL_PASSWORD_FILE": "b"})
