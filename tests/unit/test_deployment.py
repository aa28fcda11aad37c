"""What is deployed and locked, read from its files: facts that nothing else would notice."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from processor.demo.kafka_jvm import KAFKA_FILES, KAFKA_VERSION

ROOT = Path(__file__).parents[2]
LOCKS = ("bench.lock", "requirements.lock", "runtime.lock")


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


@pytest.fixture(scope="module")
def broker(services):
    return services["broker"]["environment"]


@pytest.fixture(scope="module")
def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def locked(name):
    """Return the requirements of a lock, each one's lines joined."""
    text = (ROOT / "deploy" / name).read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def pinned(name):
    return dict(line.split()[0].split("==") for line in locked(name))


def normal(requirement):
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


def listeners(text):
    """Return name -> address of a Kafka listener setting."""
    return dict(item.split("://") for item in text.split(","))


def dockerfile(word):
    """Return the arguments of an instruction, one string for each time it is given."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return re.findall(rf"^{word} (.*)$", text, flags=re.MULTILINE)


def make_recipe(target):
    """Return the commands of a target."""
    text = (ROOT / "Makefile").read_text()
    return re.search(rf"^{re.escape(target)}:.*\n((?:\t.*\n)+)", text, flags=re.MULTILINE)[1]


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_requirement_has_one_version_and_a_hash(name):
    for line in locked(name):
        assert re.match(r"[a-z0-9-]+==\S+( ; .*?)?(\s+--hash=sha256:[0-9a-f]{64})+$", line), line


@pytest.mark.parametrize("name", LOCKS)
def test_lock_names_no_address(name):
    text = (ROOT / "deploy" / name).read_text()
    assert not re.search(r"://|--\S*(index|find-links|trusted)", text)


def test_image_gets_the_versions_that_the_tests_ran_on():
    assert pinned("runtime.lock").items() <= pinned("requirements.lock").items()


def test_locks_hold_all_that_the_project_asks_for(pyproject):
    runtime = pyproject["project"]["dependencies"] + pyproject["build-system"]["requires"]
    extras = pyproject["project"]["optional-dependencies"].values()
    asked = {normal(each) for each in runtime}
    assert asked <= pinned("runtime.lock").keys()
    asked |= {normal(each) for extra in extras for each in extra}
    assert asked <= pinned("requirements.lock").keys()


def test_image_has_no_test_tools():
    assert not {"pytest", "mypy", "ruff", "noida-db"} & pinned("runtime.lock").keys()


def test_brokers_of_the_demo_and_of_compose_are_one_version(services):
    assert services["broker"]["image"] == f"apache/kafka:{KAFKA_VERSION}"
    assert f"<version>{KAFKA_VERSION}</version>" in (KAFKA_FILES / "pom.xml").read_text()


def test_every_listener_is_in_the_map_and_clients_have_two(broker):
    bound = listeners(broker["KAFKA_LISTENERS"])
    mapped = dict(i.split(":") for i in broker["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(","))
    assert bound.keys() == mapped.keys()
    advertised = listeners(broker["KAFKA_ADVERTISED_LISTENERS"])
    assert advertised.keys() == bound.keys() - {broker["KAFKA_CONTROLLER_LISTENER_NAMES"]}
    assert len(advertised) == 2
    for name, address in advertised.items():
        assert address.endswith(bound[name])


def test_listener_for_this_machine_is_published_on_its_loopback_only(services, broker):
    outside = listeners(broker["KAFKA_ADVERTISED_LISTENERS"])["PLAINTEXT_HOST"]
    host, port = outside.split(":")
    assert host == "localhost"
    assert services["broker"]["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_worker_and_topics_use_the_listener_inside(services, broker):
    inside = listeners(broker["KAFKA_ADVERTISED_LISTENERS"])["PLAINTEXT"]
    for name in ("topics", "worker"):
        environment = services[name]["environment"]
        assert environment["KAFKA_BOOTSTRAP_SERVERS"] == inside
        assert environment["PROCESSOR_APP_ID"]


@pytest.mark.parametrize(
    "setting",
    [
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR",
    ],
)
def test_one_node_is_enough_for_offsets_and_transactions(broker, setting):
    assert broker[setting] == 1


def test_no_topic_appears_by_itself(broker):
    assert broker["KAFKA_AUTO_CREATE_TOPICS_ENABLE"] == "false"


def test_worker_waits_for_topics_which_wait_for_a_healthy_broker(services):
    assert services["broker"]["healthcheck"]["test"][0] == "CMD"
    assert services["topics"]["command"] == ["topics", "create"]
    assert services["topics"]["depends_on"] == {"broker": {"condition": "service_healthy"}}
    waits_for = services["worker"]["depends_on"]
    assert waits_for == {"topics": {"condition": "service_completed_successfully"}}


def test_worker_has_time_to_drain(services):
    assert int(services["worker"]["stop_grace_period"].removesuffix("s")) > 25
    assert dockerfile("STOPSIGNAL") == ["SIGTERM"]


def test_health_is_asked_within_the_container_and_published_on_the_loopback_only(
    services,
):
    [check] = dockerfile("HEALTHCHECK")
    assert check.endswith('CMD ["processor", "health"]')
    worker = services["worker"]
    assert worker["healthcheck"]["test"] == ["CMD", "processor", "health", "--ready"]
    port = worker["environment"]["PROCESSOR_HTTP_PORT"]
    assert worker["ports"] == [f"127.0.0.1:{port}:{port}"]


def test_image_runs_the_worker_as_nobody_in_particular():
    assert dockerfile("ENTRYPOINT") == ['["processor"]']
    assert dockerfile("CMD") == ['["worker"]']
    [user] = dockerfile("USER")
    assert int(user) > 0


def test_image_installs_by_hash_only():
    installs = [run for run in dockerfile("RUN") if "pip install" in run]
    assert installs
    for run in installs:
        assert "--require-hashes -r deploy/runtime.lock" in run or "--no-deps" in run


def test_image_is_given_every_file_it_copies():
    let_in = re.findall(r"^!(.*)$", (ROOT / ".dockerignore").read_text(), flags=re.MULTILINE)
    copied = [word for copy in dockerfile("COPY") if "--from" not in copy for word in copy.split()]
    assert set(copied) - {"./"} == set(let_in)


def test_setup_installs_by_hash_and_builds_without_fetching():
    recipe = make_recipe("$(INSTALLED)")
    assert "--require-hashes -r deploy/requirements.lock" in recipe
    assert "--no-deps --no-build-isolation" in recipe


def test_make_test_runs_every_suite_and_the_broker_last():
    assert re.findall(r"\$\(MAKE\) .* (\w+)$", make_recipe("test"), flags=re.MULTILINE) == [
        "lint",
        "types",
        "unit",
        "e2e",
    ]


def test_ci_runs_what_a_developer_runs():
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith("\nCI=true make test")
