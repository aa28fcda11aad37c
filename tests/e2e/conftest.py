"""The brokers that these tests run on: one found or started, in CI both that need no Docker."""

import asyncio
import functools
import os
import uuid
from collections import defaultdict
from pathlib import Path

import pytest

from processor.core.errors import ConfigError
from processor.demo.brokers import choose, pick
from processor.demo.kafka_jvm import start_jvm
from processor.demo.kinds import EVICTING, RESTARTING
from processor.kafka.topics import create_topics
from processor.settings import Settings
from tests.e2e.oracle import QUARTERS
from tests.e2e.secure import secure_kafka as running_secure_kafka
from tests.e2e.workers import deployments

HERE = Path(__file__).parent
ABLE = {"eviction": EVICTING, "restart": RESTARTING}
#: A client of aiokafka 0.14, closed while it opens a connection, leaves it open (``_get_conn``
#: adds it after ``close``), to be collected during any later test.
LEFT_OPEN = (
    r"ignore:Exception ignored in. <(socket\.socket|function (AIOKafkaConnection|_SelectorTransport"
    r"|StreamWriter)\.__del__):pytest.PytestUnraisableExceptionWarning"
)
NOT_RUN = pytest.StashKey()
STARTED = pytest.StashKey()


@functools.cache
def broker_names():
    """Name the brokers of this run; in CI a missing one is named too, so that it fails."""
    return ("jvm", "embedded") if in_ci() else (pick(),)


def in_ci():
    return os.environ.get("CI") == "true"


@functools.cache
def has_jvm():
    try:
        pick("jvm")
    except ConfigError:
        return False
    return True


@pytest.fixture(scope="session")
def broker(request):
    """A running broker, shared by all tests: each makes topics and groups with names of its own."""
    running = choose(request.param)
    request.config.stash[STARTED].append(f"{running.name} at {running.bootstrap}")
    yield running
    running.stop()


@pytest.fixture
def deploy(broker, tmp_path):
    """A function that makes deployments, see ``workers.py``."""
    with deployments(broker, tmp_path) as deploy:
        yield deploy


@pytest.fixture
def settings_alone(broker):
    """Settings of an app of its own, whose topics are still to be made."""
    name = f"app-{uuid.uuid4().hex}"
    return Settings(
        bootstrap_servers=broker.bootstrap,
        app_id=name,
        records_topic=f"{name}.records",
        chunks_topic=f"{name}.chunks",
        dead_letter_topic=f"{name}.dead-letter",
        token_counter=QUARTERS,  # loads no vocabulary
    )


@pytest.fixture
def settings(settings_alone, request):
    """The same, its topics made with the module's number of partitions."""
    partitions = request.module.PARTITIONS
    asyncio.run(create_topics(settings_alone, partitions=partitions, replication=1))
    return settings_alone


@pytest.fixture
def own_jvm_broker():
    """Apache Kafka for one test alone, with fresh data: to be killed, frozen, started again."""
    running = start_jvm()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def secure_kafka(tmp_path_factory):
    """Apache Kafka with logins and rights, see ``secure.py``; shared, as the brokers are."""
    with running_secure_kafka(tmp_path_factory.mktemp("secure")) as running:
        yield running


@pytest.fixture
def jvm_alone():
    """For a test that starts Apache Kafka itself: it isn't run where that can't be."""


def pytest_configure(config):
    config.stash[NOT_RUN] = defaultdict(list)
    config.stash[STARTED] = []


def pytest_report_header(config):
    return f"brokers: {', '.join(broker_names())}"


def pytest_generate_tests(metafunc):
    if "broker" in metafunc.fixturenames:
        metafunc.parametrize("broker", broker_names(), indirect=True, scope="session")


@pytest.hookimpl(tryfirst=True)  # before -m selects by marker
def pytest_collection_modifyitems(config, items):
    kept, dropped = [], []
    for item in items:
        if not item.path.is_relative_to(HERE):
            kept.append(item)
            continue
        item.add_marker(pytest.mark.e2e)
        item.add_marker(pytest.mark.filterwarnings(LEFT_OPEN))
        obstacle = why_not(item)
        if obstacle is None:
            kept.append(item)
        else:
            dropped.append(item)
            config.stash[NOT_RUN][obstacle].append(item.originalname)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def why_not(item):
    """Say what keeps a test from running here, or ``None``."""
    facts = [fact for marker in item.iter_markers("needs") for fact in marker.args]
    if unknown := set(facts) - set(ABLE):
        message = f"{item.nodeid} needs {sorted(unknown)}; known are {sorted(ABLE)}"
        raise pytest.UsageError(message)
    starts_jvm = {"own_jvm_broker", "jvm_alone", "secure_kafka"} & set(item.fixturenames)
    if starts_jvm and not in_ci() and not has_jvm():
        return "without Java and Maven"
    name = item.callspec.params.get("broker") if hasattr(item, "callspec") else None
    if name is not None and any(name not in ABLE[fact] for fact in facts):
        return f"on {name}"
    return None


def pytest_terminal_summary(terminalreporter, config):
    for running in config.stash[STARTED]:
        terminalreporter.write_line(f"broker: {running}")
    for obstacle, names in config.stash[NOT_RUN].items():
        terminalreporter.write_line(f"not run {obstacle}: {', '.join(names)}")
