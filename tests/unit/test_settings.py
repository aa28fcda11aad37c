from pathlib import Path

import pytest
from pydantic import ValidationError

from processor.core.errors import ConfigError
from processor.settings import (
    SECRETS,
    Settings,
    env_name,
    flag_names,
    require_app_id,
)
from processor.settings_loading import load_settings

# Written out, not derived: these names are a promise to operators.
NAMES = {
    "KAFKA_BOOTSTRAP_SERVERS": ("bootstrap_servers", "b:1,c:2"),
    "KAFKA_SECURITY_PROTOCOL": ("security_protocol", "SSL"),
    "KAFKA_SASL_MECHANISM": ("sasl_mechanism", "SCRAM-SHA-512"),
    "KAFKA_SASL_USERNAME": ("sasl_username", "ada"),
    "KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": (
        "sasl_oauthbearer_token_endpoint_url",
        "https://login.example.test/token?tenant=1",
    ),
    "KAFKA_SASL_OAUTHBEARER_CLIENT_ID": ("sasl_oauthbearer_client_id", "ada"),
    "KAFKA_SASL_OAUTHBEARER_SCOPE": ("sasl_oauthbearer_scope", "records chunks"),
    "KAFKA_SASL_OAUTHBEARER_TOKEN_FILE": ("sasl_oauthbearer_token_file", Path("token")),
    "KAFKA_SSL_CA_LOCATION": ("ssl_ca_location", Path("ca.pem")),
    "KAFKA_GROUP_INSTANCE_ID": ("group_instance_id", "worker-1"),
    "KAFKA_AUTO_OFFSET_RESET": ("auto_offset_reset", "latest"),
    "PROCESSOR_APP_ID": ("app_id", "memory"),
    "PROCESSOR_RECORDS_TOPIC": ("records_topic", "r"),
    "PROCESSOR_CHUNKS_TOPIC": ("chunks_topic", "c"),
    "PROCESSOR_DEAD_LETTER_TOPIC": ("dead_letter_topic", "d"),
    "PROCESSOR_TELEMETRY_TOPIC": ("telemetry_topic", "t"),
    "PROCESSOR_TELEMETRY_FORMAT": ("telemetry_format", "otel"),
    "PROCESSOR_SESSION_FIELDS": ("session_fields", "a.b,c"),
    "PROCESSOR_HEADER_FIELDS": ("header_fields", "user=a.b"),
    "PROCESSOR_POSITIONS_TOPIC": ("positions_topic", "p"),
    "PROCESSOR_MAX_TOKENS": ("max_tokens", 7),
    "PROCESSOR_TOKEN_COUNTER": ("token_counter", "words"),
    "PROCESSOR_IDLE_S": ("idle_s", 1.5),
    "PROCESSOR_MAX_AGE_S": ("max_age_s", 2.5),
    "PROCESSOR_MAX_CHUNK_BYTES": ("max_chunk_bytes", 8),
    "PROCESSOR_MAX_CHUNK_RECORDS": ("max_chunk_records", 9),
    "PROCESSOR_CARRY_HEADERS": ("carry_headers", "event-time, user-id"),
    "PROCESSOR_MAX_DEAD_LETTER_RATIO": ("max_dead_letter_ratio", 0.5),
    "PROCESSOR_MAX_CONSECUTIVE_DEAD_LETTERS": ("max_consecutive_dead_letters", 0),
    "PROCESSOR_DEDUPLICATE_RECORDS": ("deduplicate_records", 5000),
    "PROCESSOR_TRACING": ("tracing", True),
    "PROCESSOR_FORGET_ENDED_AFTER_S": ("forget_ended_after_s", 86400.0),
    "PROCESSOR_CLOCK_GRACE_S": ("clock_grace_s", 0.0),
    "PROCESSOR_COMMIT_INTERVAL_S": ("commit_interval_s", 0.5),
    "PROCESSOR_COMPRESSION": ("compression", "lz4"),
    "PROCESSOR_MAX_REPLAY_RECORDS": ("max_replay_records", 11),
    "PROCESSOR_SESSION_TIMEOUT_S": ("session_timeout_s", 12.0),
    "PROCESSOR_STUCK_AFTER_S": ("stuck_after_s", 0.0),
    "PROCESSOR_HTTP_HOST": ("http_host", "::"),
    "PROCESSOR_HTTP_PORT": ("http_port", 9100),
    "PROCESSOR_ACCEPT_POLICY_CHANGE": ("accept_policy_change", True),
    "PROCESSOR_CREATE_TOPICS": ("create_topics", False),
    "PROCESSOR_LOG_FORMAT": ("log_format", "console"),
    "PROCESSOR_LOG_LEVEL": ("log_level", "debug"),
}
TESTED_TOGETHER = {*SECRETS, "ssl_certificate_location", "ssl_key_location"}


pytestmark = pytest.mark.usefixtures("in_an_empty_folder")


@pytest.mark.parametrize(("name", "field", "value"), [(k, *v) for k, v in NAMES.items()])
def test_every_field_is_read_from_its_variable(name, field, value):
    assert getattr(load_settings(environ={name: str(value)}), field) == value
    assert env_name(field) == name


def test_no_field_is_missing_from_these_tests():
    assert {field for field, _ in NAMES.values()} | TESTED_TOGETHER == set(Settings.model_fields)


def test_every_field_explains_itself():
    assert [f for f, info in Settings.model_fields.items() if not info.description] == []


def test_settings_made_in_code_do_not_read_the_environment(monkeypatch):
    monkeypatch.setenv("PROCESSOR_MAX_TOKENS", "3")
    assert Settings().max_tokens == 5000


def test_settings_are_frozen():
    with pytest.raises(ValidationError):
        Settings().max_tokens = 1


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("PROCESSOR_MAX_TOKENS", "0", "greater than 0"),
        ("PROCESSOR_MAX_TOKENS", "many", "integer"),
        ("PROCESSOR_MAX_CHUNK_BYTES", "-1", "greater than 0"),
        ("PROCESSOR_MAX_CHUNK_RECORDS", "0", "greater than 0"),
        ("PROCESSOR_MAX_REPLAY_RECORDS", "0", "greater than 0"),
        ("PROCESSOR_IDLE_S", "-1", "greater than or equal to 0"),
        ("PROCESSOR_MAX_AGE_S", "inf", "finite"),
        ("PROCESSOR_CLOCK_GRACE_S", "nan", "finite"),
        ("PROCESSOR_COMMIT_INTERVAL_S", "0", "greater than 0"),
        ("PROCESSOR_SESSION_TIMEOUT_S", "0", "greater than 0"),
        ("PROCESSOR_APP_ID", "a b", "pattern"),
        ("PROCESSOR_APP_ID", "naïve", "pattern"),
        ("PROCESSOR_RECORDS_TOPIC", "a/b", "pattern"),
        ("PROCESSOR_CREATE_TOPICS", "perhaps", "boolean"),
        ("PROCESSOR_LOG_LEVEL", "loud", "'debug', 'info', 'warning' or 'error'"),
        ("KAFKA_AUTO_OFFSET_RESET", "none", "'earliest' or 'latest'"),
        ("KAFKA_SECURITY_PROTOCOL", "TLS", "'SSL'"),
        (
            "KAFKA_SASL_MECHANISM",
            "GSSAPI",
            "'PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512' or 'OAUTHBEARER'",
        ),
    ],
)
def test_bad_value_is_named_with_what_is_allowed(name, value, allowed):
    with pytest.raises(ConfigError) as error:
        load_settings(environ={name: value})
    assert f"{name}={value} (environment)" in str(error.value)
    assert allowed in str(error.value)


def test_combinations_that_are_wrong_are_told_at_once():
    environ = {"PROCESSOR_CHUNKS_TOPIC": "records", "KAFKA_SSL_KEY_LOCATION": "k.pem"}
    with pytest.raises(ConfigError, match=r"(?s)a topic each.*both or none"):
        load_settings(environ=environ)


def test_log_level_may_be_in_capitals():
    assert load_settings(environ={"PROCESSOR_LOG_LEVEL": "INFO"}).log_level == "info"


def test_topics_must_differ():
    with pytest.raises(ConfigError, match="a topic each"):
        load_settings({"chunks_topic": "records"}, environ={})
    with pytest.raises(ConfigError, match="a topic each"):
        load_settings({"app_id": "a", "chunks_topic": "a-sessions-changelog"}, environ={})


def test_sasl_needs_a_name_and_a_password():
    with pytest.raises(ConfigError, match="set KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD"):
        load_settings({"security_protocol": "SASL_SSL"}, environ={})
    with pytest.raises(ConfigError, match="set KAFKA_SASL_PASSWORD"):
        load_settings({"security_protocol": "SASL_SSL", "sasl_username": "ada"}, environ={})


def test_oauthbearer_needs_a_token_endpoint_or_a_token_file():
    environ = {"KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "KAFKA_SASL_MECHANISM": "OAUTHBEARER"}
    missing = "TOKEN_ENDPOINT_URL and .*CLIENT_ID and KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET$"
    with pytest.raises(ConfigError, match=missing):
        load_settings(environ=environ)
    load_settings(environ=environ | {"KAFKA_SASL_OAUTHBEARER_TOKEN_FILE": "t"})
    endpoint = {
        "KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": "https://login.example.test/t",
        "KAFKA_SASL_OAUTHBEARER_CLIENT_ID": "ada",
        "KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": "hush",
    }
    load_settings(environ=environ | endpoint)
    with pytest.raises(ConfigError, match="not both"):
        load_settings(environ=environ | endpoint | {"KAFKA_SASL_OAUTHBEARER_TOKEN_FILE": "t"})


@pytest.mark.parametrize("url", ["file:///etc/passwd", "login/token", "https://me:pw@login/t"])
def test_token_endpoint_is_a_web_address_without_credentials(url):
    with pytest.raises(ConfigError, match="KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL"):
        load_settings(environ={"KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": url})


def test_certificate_and_key_come_together():
    both = {"KAFKA_SSL_CERTIFICATE_LOCATION": "c.pem", "KAFKA_SSL_KEY_LOCATION": "k.pem"}
    settings = load_settings(environ=both)
    assert settings.ssl_certificate_location == Path("c.pem")
    assert settings.ssl_key_location == Path("k.pem")
    for name, value in both.items():
        with pytest.raises(ConfigError, match="both or none"):
            load_settings(environ={name: value})


def test_changelog_carries_the_name_of_the_app():
    assert load_settings({"app_id": "memory"}, environ={}).changelog_topic == (
        "memory-sessions-changelog"
    )


def test_app_id_is_asked_for_where_it_is_needed():
    settings = load_settings(environ={})
    with pytest.raises(ConfigError, match="PROCESSOR_APP_ID isn't set"):
        require_app_id(settings)
    with pytest.raises(ConfigError, match="PROCESSOR_APP_ID isn't set"):
        _ = settings.changelog_topic


def test_every_field_but_secrets_has_a_flag():
    flags = flag_names()
    assert flags["max_tokens"] == "--max-tokens"
    assert flags["bootstrap_servers"] == "--bootstrap-servers"
    assert set(flags) == set(Settings.model_fields) - set(SECRETS)
