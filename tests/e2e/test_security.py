"""Every way to log in, with every kind of client; and what is said when one is refused."""

import asyncio
import json
import re
import time

import pytest

from processor.core.errors import ConfigError
from processor.kafka.flow import chunking
from processor.kafka.granted import check_rights
from processor.kafka.rights import Right, flow_rights
from processor.settings_loading import load_settings
from tests.e2e import acls, asking
from tests.e2e.producing import Line
from tests.e2e.secure import TokenEndpoint
from tests.e2e.secure_app import SecureApp, without_secrets

LOGINS = ("SCRAM-SHA-512", "PLAIN", "OAUTHBEARER", "MTLS")
MARKER = "words-of-a-transcript-that-no-log-may-hold"


@pytest.fixture
def app(secure_kafka, tmp_path):
    made = SecureApp(secure_kafka, tmp_path, partitions=1)
    made.create_topics()
    made.rights = flow_rights(chunking(made.topics))
    # What the other verbs need beside.
    letters = Right("Read", "topic", made.topics.dead_letter_topic)
    made.grant(*made.rights, Right("Write", "topic", made.records), letters)
    yield made
    made.stop()


@pytest.mark.parametrize("login", LOGINS)
def test_every_verb_works_with_every_login(app, login, tmp_path):
    (tmp_path / "s1.jsonl").write_text(f'{{"text": "{MARKER}"}}\n' * 3)
    app.by(login)
    worker = app.start(log_level="debug", log_format="json")
    for verb, said in (
        (("config", "check", "--connect"), "a worker's rights"),
        (("topics", "check"), "4 topics of 1 partitions"),
        (("produce", str(tmp_path / "s1.jsonl"), "--end"), "sent 3 records"),
        (("tail", "--from-start", "--max-chunks", "1"), "s1  t=1  3 records"),
        (("verify",), "3 records in 1 sessions -> 1 chunks; 0 missing"),
        (("state", "show"), "chunked: 3"),
    ):
        code, output = app.says(*verb)
        assert (code, said) == (0, said if said in output else output), verb
    assert worker.terminate() == 0
    log = without_secrets(worker.output())
    events = [json.loads(line) for line in log.splitlines()]
    ready = next(it for it in events if it["message"] == "partition is ready")
    assert (ready["topic"], ready["partition"], ready["offset"]) == (app.records, 0, 0)
    assert ready["generation"] > 0
    assert MARKER not in log
    assert "s1" not in log


REFUSALS = {
    "SCRAM: wrong password": ("SCRAM-SHA-512", {"KAFKA_SASL_PASSWORD": "guess"}, "its password"),
    "SCRAM: unknown user": ("SCRAM-SHA-256", {"KAFKA_SASL_USERNAME": "eve"}, "USERNAME=eve"),
    "PLAIN: wrong password": ("PLAIN", {"KAFKA_SASL_PASSWORD": "guess"}, "its password"),
    "mechanism that the listener has not": (
        "PLAIN",
        {"KAFKA_SASL_MECHANISM": "SCRAM-SHA-256"},
        "takes no KAFKA_SASL_MECHANISM=SCRAM-SHA-256",
    ),
    "wrong client secret": (
        "OAUTHBEARER",
        {"KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET": "guess"},
        "HTTP status 401, invalid_client",
    ),
    "authority that we don't trust": (
        "MTLS",
        {"KAFKA_SSL_CA_LOCATION": "{folder}/stranger-ca.pem"},
        "name its authority in KAFKA_SSL_CA_LOCATION",
    ),
    "certificate of another host": ("ELSEWHERE", {}, "by a name that the certificate has"),
    "expired certificate": ("EXPIRED", {}, "have the broker's certificate renewed"),
    "client without a certificate": (
        "MTLS",
        {"KAFKA_SSL_CERTIFICATE_LOCATION": None, "KAFKA_SSL_KEY_LOCATION": None},
        "refuses our certificate",
    ),
    "client with a stranger's certificate": (
        "MTLS",
        {
            "KAFKA_SSL_CERTIFICATE_LOCATION": "{folder}/stranger.pem",
            "KAFKA_SSL_KEY_LOCATION": "{folder}/stranger.key",
        },
        "refuses our certificate",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_refused_login_ends_at_once_and_says_why(app, case):
    login, changes, said = REFUSALS[case]
    filled = {k: v and v.format(folder=app.kafka.folder) for k, v in changes.items()}
    code, output = app.by(login, **filled).says("worker")
    assert code == 78, output
    assert said in output.splitlines()[-1]
    assert "Traceback" not in output
    assert "guess" not in output


def foreign_token(_):
    stranger = TokenEndpoint()
    stranger.stop()
    return stranger.token()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda it: it.token(aud="another"), id="of another audience"),
        pytest.param(lambda it: it.token(exp=1_000_000), id="expired"),
        pytest.param(foreign_token, id="signed by another key"),
    ],
)
def test_token_that_the_broker_refuses_is_told_from_silence(app, make, tmp_path):
    """Symptom: ``no answer``, since aiokafka took the refusal for a login."""
    file = tmp_path / "token"
    file.write_text(make(app.kafka.tokens))
    code, output = by_token_file(app, file).says("tail")
    assert code == 78, output
    assert "issuer, audience and scope" in output
    assert file.read_text() not in output


def test_token_of_a_file_logs_in(app, tmp_path):
    file = tmp_path / "token"
    file.write_text(app.kafka.tokens.token() + "\n")
    code, output = by_token_file(app, file).says("topics", "check")
    assert code == 0, output


def by_token_file(app, file):
    return app.by(
        "OAUTHBEARER",
        KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL=None,
        KAFKA_SASL_OAUTHBEARER_TOKEN_FILE=str(file),
    )


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL": "http://127.0.0.1:1/token"}, 69),
        ({"KAFKA_SECURITY_PROTOCOL": "PLAINTEXT"}, 69),
    ],
)
def test_silence_is_no_matter_of_settings(app, changes, code):
    found, output = app.by("OAUTHBEARER", **changes).says("config", "check", "--connect")
    assert found == code, output


def test_worker_outlives_its_tokens(app):
    """The broker closes a connection whose token has expired; the next one brings a new one."""
    app.kafka.tokens.life_s = 4
    try:
        worker = app.by("OAUTHBEARER").start()
        given = app.kafka.tokens.given
        for number in range(4):
            app.send([Line(b"s1", json.dumps(number).encode())])
            app.wait_until_caught_up(within_s=30)
            time.sleep(2)
        assert app.kafka.tokens.given >= given + 2
        assert app.judged().records == 4
        assert worker.terminate() == 0
    finally:
        app.kafka.tokens.life_s = 300
    without_secrets(worker.output())


# Rights.


def test_each_right_of_a_worker_is_needed_and_named_when_it_is_missing(app):
    settings = load_settings(environ=app.by("SCRAM-SHA-512").environment())
    for right in app.rights:
        app.revoke(right)
        with pytest.raises(ConfigError, match=re.escape(f"User:worker lacks {right};")):
            asyncio.run(check_rights(settings, app.rights))
        app.grant(right)
    asyncio.run(check_rights(settings, app.rights))


def test_worker_without_a_right_does_not_start(app):
    right = Right("Write", "topic", app.chunks)
    app.revoke(right)
    code, output = app.by("PLAIN").says("worker")
    assert code == 78
    assert f"User:worker lacks {right};" in output


@pytest.mark.parametrize("lost", ["Write on topic", "Read on topic", "Read on group"])
def test_right_that_is_taken_away_ends_a_running_worker(app, lost):
    app.send([Line(b"s1", b'"a"')])
    worker = app.by("SCRAM-SHA-256").start()
    app.wait_until_caught_up()
    right = next(it for it in app.rights if str(it).startswith(lost))
    app.revoke(right)
    app.send([Line(b"s1", b'"b"'), Line(b"s1", None)])
    assert worker.exit_code(within_s=30) == 78
    assert f"User:worker lacks {right};" in worker.output()


def test_transactional_id_that_may_only_be_seen_is_named(app):
    """The broker tells beforehand only whether it is hidden."""
    right = app.rights[-1]
    app.revoke(right)
    app.grant(right._replace(operation="Describe"))
    code, output = app.by("MTLS").says("worker")
    assert code == 78, output
    assert f"lacks {right};" in output
    assert "--resource-pattern-type prefixed" in output


def test_printed_commands_grant_what_is_missing(app):
    """Read as ``kafka-acls.sh`` reads them, which is not among the broker's jars."""
    app.by("SCRAM-SHA-512")
    for right in app.rights:
        app.revoke(right)
    missing = set()
    # Of a topic that is hidden the broker tells less.
    while (said := app.says("config", "check", "--connect"))[0] == 78:
        commands = [line for line in said[1].splitlines() if "kafka-acls.sh" in line]
        assert commands, said
        for principal, right in map(acls.in_command, commands):
            missing.add(right)
            asyncio.run(acls.grant(app.bootstrap, principal, [right]))
    assert missing == set(app.rights)


@pytest.mark.parametrize(
    ("verb", "right"),
    [
        ("produce", Right("Write", "topic", "records")),
        ("tail", Right("Read", "topic", "chunks")),
        ("verify", Right("Read", "topic", "dead_letter")),
        ("topics create", Right("Create", "topic", "chunks")),
    ],
)
def test_other_verbs_name_the_right_that_they_lack(app, verb, right, tmp_path):
    (tmp_path / "s1.jsonl").write_text("{}\n")
    files = [str(tmp_path / "s1.jsonl")] if verb == "produce" else []
    right = right._replace(name=getattr(app.topics, f"{right.name}_topic"))
    if verb == "topics create":
        asyncio.run(asking.delete_topic(app.bootstrap, right.name))
    else:
        app.revoke(right)
    code, output = app.by("SCRAM-SHA-512").says(*verb.split(), *files)
    assert code == 78, output
    assert f"User:worker lacks {right};" in output


def test_topics_may_be_created_with_the_rights_that_are_documented(app):
    for topic in (app.chunks, app.topics.dead_letter_topic):
        asyncio.run(asking.delete_topic(app.bootstrap, topic))
    create = [Right("Create", "topic", it) for it in (app.chunks, app.topics.dead_letter_topic)]
    app.grant(*create)
    code, output = app.by("SCRAM-SHA-512").says("topics", "create")
    assert code == 0, output
