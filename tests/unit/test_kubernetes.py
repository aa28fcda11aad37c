"""The manifests: valid by Kubernetes' own schemas, and at one with the image and the code."""

from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from processor.cli.running import DRAIN_S
from processor.settings import Settings
from processor.settings_loading import load_settings
from tests.unit.repository import ROOT, dockerfile

KUBERNETES = ROOT / "deploy" / "kubernetes"
BASE, OVERLAY = KUBERNETES / "base", KUBERNETES / "overlays" / "example"
#: The oldest that has all fields used here, and the newest that the checker knows.
VERSIONS = ("1.27", kubernetes_validate.latest_version())
RESOURCES = sorted(BASE.glob("[!k]*.yaml"))


def read(path):
    return yaml.safe_load(path.read_text())


def pairs(lines):
    return dict(line.split("=", 1) for line in lines)


def merged(base, patch):
    """Return a resource with a patch in it, as kustomize does: containers by name, lists anew."""
    if isinstance(base, dict) and isinstance(patch, dict):
        return base | {key: merged(base.get(key), value) for key, value in patch.items()}
    if isinstance(base, list) and all(isinstance(it, dict) and "name" in it for it in base):
        changes = {it["name"]: it for it in patch}
        assert changes.keys() <= {it["name"] for it in base}
        return [merged(it, changes.get(it["name"], {})) for it in base]
    return patch


def patched():
    """Return the overlay's resources by kind."""
    resources = {(it := read(path))["kind"]: it for path in RESOURCES}
    for patch in read(OVERLAY / "kustomization.yaml")["patches"]:
        change = read(OVERLAY / patch["path"])
        target = resources[change["kind"]]
        assert change["metadata"]["name"] == target["metadata"]["name"]
        resources[change["kind"]] = merged(target, change)
    return resources


@pytest.fixture(scope="module")
def resources():
    return {(it := read(path))["kind"]: it for path in RESOURCES}


@pytest.fixture(scope="module")
def pod(resources):
    return resources["StatefulSet"]["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def worker(pod):
    [container] = pod["containers"]
    return container


@pytest.fixture(scope="module")
def environment():
    return pairs((BASE / "settings.env").read_text().splitlines())


@pytest.fixture
def secret_files(tmp_path, environment):
    """Return the base's environment with its files where a test can have them."""
    for name in ("password", "ca.crt"):
        (tmp_path / name).write_text("secret\n")
    folder = "/etc/processor/kafka"
    return {name: value.replace(folder, str(tmp_path)) for name, value in environment.items()}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", RESOURCES, ids=lambda path: path.name)
def test_resource_is_valid_and_has_no_field_that_kubernetes_does_not_know(path, version):
    kubernetes_validate.validate(read(path), version, strict=True)


@pytest.mark.parametrize("kind", ["StatefulSet", "NetworkPolicy"])
def test_what_the_overlay_changes_is_valid(kind):
    kubernetes_validate.validate(patched()[kind], VERSIONS[0], strict=True)


def test_checker_refuses_a_field_that_is_misspelt(resources):
    wrong = merged(resources["StatefulSet"], {"spec": {"replica": 2}})
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)


@pytest.mark.parametrize("folder", [BASE, OVERLAY], ids=["base", "example"])
def test_kustomization_names_every_file(folder):
    listed = read(folder / "kustomization.yaml")
    files = {it for it in listed["resources"] if not it.startswith("..")}
    files |= {it["path"] for it in listed.get("patches", [])}
    files |= {file for it in listed["configMapGenerator"] for file in it.get("envs", [])}
    assert files == {it.name for it in folder.iterdir()} - {"kustomization.yaml"}


def test_every_selector_finds_the_workers(resources):
    labels = resources["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    assert resources["StatefulSet"]["spec"]["selector"]["matchLabels"] == labels
    assert resources["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert resources["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert resources["Service"]["spec"]["selector"] == labels
    [spread] = resources["StatefulSet"]["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"] == labels


def test_settings_are_known_and_allowed(secret_files):
    settings = load_settings(environ=secret_files)
    assert settings.security_protocol == "SASL_SSL"
    assert not settings.create_topics


def test_overlay_changes_settings_that_the_base_has(environment):
    [generator] = read(OVERLAY / "kustomization.yaml")["configMapGenerator"]
    assert generator["behavior"] == "merge"
    assert pairs(generator["literals"]).keys() <= environment.keys()


def test_no_secret_is_a_setting(environment):
    assert not {"KAFKA_SASL_PASSWORD", "KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET"} & environment.keys()


def test_files_that_settings_name_are_in_the_mounted_secret(pod, worker, environment):
    [mount] = worker["volumeMounts"]
    named = [value for value in environment.values() if value.startswith("/")]
    assert {str(Path(it).parent) for it in named} == {mount["mountPath"]}
    [volume] = pod["volumes"]
    assert volume["name"] == mount["name"]
    assert volume["secret"]["defaultMode"] == 0o440


def test_pods_name_is_the_workers_in_the_group(worker, pod):
    [variable] = worker["env"]
    assert variable["name"] == "KAFKA_GROUP_INSTANCE_ID"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    assert pod["enableServiceLinks"] is False


def test_container_runs_the_image_as_its_user_without_rights(pod, worker):
    assert worker["args"] == ["worker"]
    [user] = dockerfile("USER")
    own = pod["securityContext"]
    assert user == f"{own['runAsUser']}:{own['runAsGroup']}"
    assert own["fsGroup"] == own["runAsGroup"]
    assert own["runAsNonRoot"]
    assert worker["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_worker_has_time_to_drain(pod):
    assert pod["terminationGracePeriodSeconds"] > DRAIN_S


def test_restart_with_its_drain_can_fit_into_the_session_timeout(secret_files):
    assert load_settings(environ=secret_files).session_timeout_s > DRAIN_S


def test_probes_ask_where_the_worker_answers(resources, worker, secret_files):
    settings = load_settings(environ=secret_files)
    [port] = worker["ports"]
    assert port == {"name": "http", "containerPort": settings.http_port}
    assert settings.http_host == "0.0.0.0"  # noqa: S104 - of the pod, behind the network policy
    assert worker["livenessProbe"]["httpGet"] == {"path": "/livez", "port": "http"}
    assert worker["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    [served] = resources["Service"]["spec"]["ports"]
    assert (served["port"], served["targetPort"]) == (settings.http_port, "http")
    [asked] = resources["NetworkPolicy"]["spec"]["ingress"]
    assert asked["ports"] == [{"port": settings.http_port}]


def test_worker_that_hangs_ends_itself_before_the_probe_ends_it(worker):
    probe = worker["livenessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] > Settings().stuck_after_s


@pytest.mark.parametrize("which", ["base", "example"])
def test_network_policy_lets_out_to_the_brokers_ports_and_names_alone(which, environment):
    policy, brokers = read(BASE / "network-policy.yaml"), environment["KAFKA_BOOTSTRAP_SERVERS"]
    if which == "example":
        policy = patched()["NetworkPolicy"]
        [generator] = read(OVERLAY / "kustomization.yaml")["configMapGenerator"]
        brokers = pairs(generator["literals"])["KAFKA_BOOTSTRAP_SERVERS"]
    let_out = {it["port"] for rule in policy["spec"]["egress"] for it in rule["ports"]}
    assert let_out == {53} | {int(it.rpartition(":")[2]) for it in brokers.split(",")}


def test_image_is_the_projects_version(worker, version):
    assert worker["image"] == f"processor:{version}"
    [image] = read(OVERLAY / "kustomization.yaml")["images"]
    assert (image["name"], image["newTag"]) == ("processor", version)
