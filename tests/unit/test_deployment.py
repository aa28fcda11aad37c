"""What is deployed and locked, read from its files: facts that nothing else would notice."""

import re
from pathlib import Path

import pytest
import yaml

from processor.cli import EXIT_CODES
from processor.cli.running import DRAIN_S
from processor.core.errors import ConfigError
from processor.demo.kafka_jvm import KAFKA_FILES, KAFKA_VERSION
from processor.settings_loading import load_settings
from tests.queries import VARIABLES
from tests.unit.repository import ROOT, dockerfile, make_recipe

LOCKS = ("audit.lock", "bench.lock", "requirements.lock", "runtime.lock")
WORKERS = ("worker-1", "worker-2")
OURS = ("topics", *WORKERS)


@pytest.fixture(scope="module")
def services():
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]


@pytest.fixture(scope="module")
def broker(services):
    return services["broker"]["environment"]


def locked(name):
    """Return the requirements of a lock, each one's lines joined."""
    text = (ROOT / "deploy" / name).read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def pinned(name):
    return dict(line.split()[0].split("==") for line in locked(name))


def normal(requirement):
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


def environment(service):
    return {name: str(value) for name, value in service["environment"].items()}


def listeners(text):
    """Return name -> address of a Kafka listener setting."""
    return dict(item.split("://") for item in text.split(","))


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


@pytest.mark.parametrize("name", OURS)
def test_workers_and_topics_use_the_listener_inside(services, broker, name):
    inside = listeners(broker["KAFKA_ADVERTISED_LISTENERS"])["PLAINTEXT"]
    settings = load_settings(environ=environment(services[name]))
    assert settings.bootstrap_servers == inside
    assert settings.app_id
    assert not settings.create_topics or name == "topics"


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


@pytest.mark.parametrize("name", WORKERS)
def test_worker_waits_for_topics_which_wait_for_a_healthy_broker(services, name):
    assert services["broker"]["healthcheck"]["test"][0] == "CMD"
    assert services["topics"]["command"] == ["topics", "create"]
    assert services["topics"]["depends_on"] == {"broker": {"condition": "service_healthy"}}
    waits_for = services[name]["depends_on"]
    assert waits_for == {"topics": {"condition": "service_completed_successfully"}}


@pytest.mark.parametrize("name", WORKERS)
def test_worker_has_time_to_drain(services, name):
    assert int(services[name]["stop_grace_period"].removesuffix("s")) > DRAIN_S
    assert dockerfile("STOPSIGNAL") == ["SIGTERM"]


@pytest.mark.parametrize("name", WORKERS)
def test_health_is_asked_within_the_container(services, name):
    [check] = dockerfile("HEALTHCHECK")
    assert check.endswith('CMD ["processor", "health"]')
    assert services[name]["healthcheck"]["test"] == ["CMD", "processor", "health", "--ready"]
    port = load_settings(environ=environment(services[name])).http_port
    assert services[name]["ports"][0].endswith(f":{port}")


def test_workers_have_ids_of_their_own_in_the_group(services):
    ids = [services[name]["environment"]["KAFKA_GROUP_INSTANCE_ID"] for name in WORKERS]
    assert ids == list(WORKERS)


def test_every_port_is_published_on_the_loopback_only_and_once(services):
    ports = [port.split(":") for it in services.values() for port in it.get("ports", [])]
    assert {address for address, _, _ in ports} == {"127.0.0.1"}
    assert len({port for _, port, _ in ports}) == len(ports)


@pytest.mark.parametrize("name", OURS)
def test_what_runs_our_image_may_write_nothing_and_has_no_rights(services, name):
    it = services[name]
    assert it["read_only"]
    assert it["cap_drop"] == ["ALL"]
    assert it["security_opt"] == ["no-new-privileges:true"]


def test_every_image_is_of_one_version(services, version):
    tags = [it["image"].rpartition(":")[2] for it in services.values()]
    assert all(re.fullmatch(r"v?\d+\.\d+\.\d+", tag) for tag in tags), tags
    assert {services[name]["image"] for name in OURS} == {f"processor:{version}"}
    assert all(services[name]["build"] == "." for name in OURS)


def test_only_kafka_and_ours_start_unasked(services):
    unasked = {name for name, it in services.items() if "profiles" not in it}
    assert unasked == {"broker", *OURS}
    assert make_recipe("up").split() == ["docker", "compose", "up", "--build", "--detach"]


@pytest.mark.parametrize("name", ["prometheus", "grafana"])
def test_files_that_are_mounted_are_there(services, name):
    for volume in services[name]["volumes"]:
        assert (ROOT / volume.split(":")[0]).exists(), volume


def test_prometheus_asks_every_worker_under_the_name_that_alerts_and_dashboard_have(services):
    folder = ROOT / "deploy" / "prometheus"
    asked = yaml.safe_load((folder / "prometheus.yml").read_text())
    [job] = asked["scrape_configs"]
    assert job["job_name"] == VARIABLES["$job"]
    [targets] = [it["targets"] for it in job["static_configs"]]
    ports = [services[name]["environment"]["PROCESSOR_HTTP_PORT"] for name in WORKERS]
    assert targets == [f"{name}:{port}" for name, port in zip(WORKERS, ports, strict=True)]
    assert [(folder / it).exists() for it in asked["rule_files"]] == [True]


def test_grafana_finds_prometheus_and_the_dashboard(services):
    folder = ROOT / "deploy" / "grafana" / "provisioning"
    [source] = yaml.safe_load((folder / "datasources" / "prometheus.yaml").read_text())[
        "datasources"
    ]
    port = services["prometheus"]["ports"][0].rpartition(":")[2]
    assert source["url"] == f"http://prometheus:{port}"
    [provider] = yaml.safe_load((folder / "dashboards" / "files.yaml").read_text())["providers"]
    mounted = [it.split(":")[1] for it in services["grafana"]["volumes"]]
    shown = services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert shown in mounted
    assert str(Path(shown).parent) == provider["options"]["path"]


def test_unit_of_systemd_starts_again_what_a_start_can_mend_and_not_at_once():
    unit = (ROOT / "deploy" / "systemd" / "processor@.service").read_text()
    told = dict(re.findall(r"^(\w+)=(.*)$", unit, flags=re.MULTILINE))
    assert told["ExecStart"].endswith("/bin/processor worker")
    assert (told["Restart"], told["StartLimitIntervalSec"]) == ("always", "0")
    assert int(told["RestartSec"]) < int(told["RestartMaxDelaySec"])
    assert "shuf" in told["ExecStartPre"]
    assert told["RestartPreventExitStatus"] == f"2 {dict(EXIT_CODES)[ConfigError]}"
    assert int(told["TimeoutStopSec"]) > DRAIN_S


def test_image_runs_the_worker_as_nobody_in_particular():
    assert dockerfile("ENTRYPOINT") == ['["processor"]']
    assert dockerfile("CMD") == ['["worker"]']
    [user] = dockerfile("USER")
    assert all(int(it) > 0 for it in user.split(":"))


def test_image_is_built_from_the_same_bytes_each_time(version):
    base, *stages = dockerfile("FROM")
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+@sha256:[0-9a-f]{64} AS python", base)
    assert [it.split()[0] for it in stages] == ["python", "python"]
    assert dockerfile("ARG") == ["SOURCE_DATE_EPOCH=0", "COMMIT="]
    assert "--build-arg COMMIT=$$(git rev-parse" in make_recipe("image")
    assert any("SOURCE_COMMIT=$COMMIT" in it for it in dockerfile("ENV"))
    assert f"name=processor:{version},rewrite-timestamp=true" in make_recipe("image")


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
