"""Secrets are planted in every place where one may be set; nothing that is printed has one."""

import traceback

import pytest
from click.testing import CliRunner

from processor.cli import cli

SECRETS = ("planted-password", "planted-client-secret", "planted-token")
NOBODY = "127.0.0.1:1"
LOGIN = {
    "PROCESSOR_APP_ID": "a",
    "PROCESSOR_LOG_LEVEL": "debug",
    "KAFKA_BOOTSTRAP_SERVERS": NOBODY,
    "KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
    "KAFKA_SASL_USERNAME": "ada",
    "KAFKA_SASL_PASSWORD": SECRETS[0],
    "KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": SECRETS[1],
}
BEARER = {
    "KAFKA_SASL_MECHANISM": "OAUTHBEARER",
    "KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": f"http://{NOBODY}/token",
    "KAFKA_SASL_OAUTHBEARER_CLIENT_ID": "ada",
}


pytestmark = pytest.mark.usefixtures("in_an_empty_folder", "quiet_log")


@pytest.fixture(autouse=True)
def files_of_secrets(tmp_path):
    (tmp_path / "lines.jsonl").write_text("{}\n")
    (tmp_path / "token").write_text(f"{SECRETS[2]} in two words")


def said(*args, **env):
    """Run a verb; return all that it prints, and what an error prints at log level debug."""
    done = CliRunner().invoke(cli, args, env=LOGIN | env)
    error = done.exception
    return done.output + ("".join(traceback.format_exception(error)) if error else "")


def check(text):
    for secret in SECRETS:
        assert secret not in text


@pytest.mark.parametrize("verb", ["show", "show --output json", "show --redacted"])
def test_settings_are_shown_without_secrets(verb):
    text = said("config", *verb.split())
    assert "KAFKA_SASL_PASSWORD" in text
    check(text)


@pytest.mark.parametrize(
    "env",
    [
        {"PROCESSOR_MAX_TOKENS": "0"},
        {"PROCESSOR_CHUNKS_TOPIC": "records"},
        {"KAFKA_SASL_USERNAME": ""},
        {"KAFKA_SASL_PASSWORD_FILE": "token"},
        {"KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET_FILE": "gone"},
        {"PROCESSOR_TOKEN_COUNTER": "words"},
        {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SSL_CA_LOCATION": "token"},
        {"KAFKA_SASL_MECHANISM": "OAUTHBEARER"},
    ],
    ids=",".join,
)
def test_what_is_wrong_with_settings_is_told_without_secrets(env):
    text = said("config", "check", **env)
    assert "ConfigError" in text
    check(text)


@pytest.mark.parametrize(
    "line", ['sasl_password = ["{}"]', 'sasl_passwort = "{}"', 'sasl_password = "{}'], ids=str
)
def test_file_that_is_wrong_is_told_without_secrets(tmp_path, line):
    (tmp_path / "processor.toml").write_text(line.format(SECRETS[0]))
    text = said("config", "check", KAFKA_SASL_PASSWORD="")
    assert "ConfigError" in text
    check(text)


@pytest.mark.parametrize("login", [{}, BEARER, BEARER | {"KAFKA_SASL_PASSWORD": ""}])
@pytest.mark.parametrize(
    "verb", ["topics check", "produce lines.jsonl", "tail", "verify", "state show"]
)
def test_broker_that_does_not_answer_is_told_without_secrets(verb, login):
    text = said(*verb.split(), **login)
    assert f"no answer from {NOBODY}" in text
    check(text)


def test_file_without_a_token_is_told_without_its_content(tmp_path):
    (tmp_path / "token").write_text(f"{SECRETS[2]}\x01")
    env = BEARER | {
        "KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": "",
        "KAFKA_SASL_OAUTHBEARER_TOKEN_FILE": "token",
    }
    check(said("topics", "check", **env))
