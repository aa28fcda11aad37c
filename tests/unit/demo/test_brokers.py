"""Which broker is picked, by what there is on the machine; the brokers run in tests/e2e."""

import sys
from typing import get_args

import pytest

from processor.core.errors import ConfigError
from processor.demo import brokers, kafka_jvm


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with nothing on it; call it to install programs, each with an exit code."""
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))

    def install(**exit_codes):
        for name, code in exit_codes.items():
            program = programs / name.replace("_", "-")
            program.write_text(f"#!/bin/sh\nexit {code}\n")
            program.chmod(0o755)

    return install


def test_given_broker_comes_first(machine, monkeypatch):
    machine(docker=0, java=0, mvn=0, noida_db=0)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "kafka:9092")
    assert brokers.pick() == "given"
    assert brokers.choose().bootstrap == "kafka:9092"


def test_docker_comes_before_the_jvm(machine):
    machine(docker=0, java=0, mvn=0, noida_db=0)
    assert brokers.pick() == "docker"


def test_docker_without_an_engine_is_no_broker(machine):
    machine(docker=1, java=0, mvn=0, noida_db=0)
    assert brokers.pick() == "jvm"


def test_java_without_maven_is_no_broker_unless_the_jars_are_there(machine):
    machine(java=0, noida_db=0)
    assert brokers.pick() == "embedded"
    kafka_jvm.cache_dir().mkdir(parents=True)
    assert brokers.pick() == "jvm"


def test_machine_with_nothing_is_told_all_that_would_do(machine):
    with pytest.raises(ConfigError) as caught:
        brokers.pick()
    for remedy in ("KAFKA_BOOTSTRAP_SERVERS", "testcontainers", "Maven", "poimen-processor[demo]"):
        assert remedy in str(caught.value)


@pytest.mark.parametrize("name", get_args(brokers.BrokerName))
def test_forced_broker_that_cannot_run_is_an_error_with_its_remedy(machine, name):
    with pytest.raises(ConfigError, match=rf"'{name}' can't run here; for "):
        brokers.pick(name)


def test_forced_broker_is_taken_though_others_come_first(machine):
    machine(docker=0, java=0, mvn=0, noida_db=0)
    assert brokers.pick("embedded") == "embedded"


def test_unknown_broker_is_an_error_that_names_the_known(machine):
    with pytest.raises(ConfigError, match="'kafka'; known are given, docker, jvm, embedded"):
        brokers.pick("kafka")


def test_failed_fetch_leaves_nothing_and_says_what_maven_said(machine, tmp_path):
    (tmp_path / "bin" / "mvn").write_text("#!/bin/sh\necho no such artifact\nexit 1\n")
    (tmp_path / "bin" / "mvn").chmod(0o755)
    with pytest.raises(ConfigError, match="no such artifact"):
        kafka_jvm.fetch_jars()
    assert list(kafka_jvm.cache_dir().parent.iterdir()) == []


def test_fetch_that_another_process_wins_uses_its_jars(machine, tmp_path):
    jars = kafka_jvm.cache_dir()
    maven = tmp_path / "bin" / "mvn"
    # While this Maven runs, the other process finishes.
    maven.write_text(
        "#!/bin/sh\nPATH=/usr/bin:/bin\n"
        'for each; do case "$each" in -DoutputDirectory=*) mkdir "${each#*=}";; esac; done\n'
        f"mkdir '{jars}'; echo theirs > '{jars}/kafka.jar'\n"
    )
    maven.chmod(0o755)
    assert kafka_jvm.fetch_jars() == jars
    assert (jars / "kafka.jar").read_text() == "theirs\n"
    assert list(jars.parent.iterdir()) == [jars]
