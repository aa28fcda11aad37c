"""Brokers for the demo, the tests and the benchmarks: given, in Docker, on the JVM, embedded."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

from processor.core.errors import ConfigError
from processor.demo.kafka_jvm import cache_dir, start_jvm
from processor.demo.kinds import EVICTING, BrokerName
from processor.demo.local_broker import HOST, LocalBroker, free_ports, home_for, stopped_on_failure

if TYPE_CHECKING:
    from testcontainers.community.kafka import KafkaContainer

DOCKER_IMAGE: Final = "confluentinc/cp-kafka:7.6.0"


class Broker(Protocol):
    """A running Kafka broker."""

    @property
    def name(self) -> str:
        """Return which kind this is, a ``BrokerName``."""

    @property
    def bootstrap(self) -> str:
        """Return the address for clients, ``host:port``."""

    @property
    def evicts_members(self) -> bool:
        """Tell whether it drops group members that stop sending heartbeats."""

    def stop(self) -> None:
        """End it, if it is ours, and remove what it kept."""


@dataclass(frozen=True, slots=True)
class GivenBroker:
    """Someone else's broker, which must already run: used, never started or stopped."""

    bootstrap: str
    name: Literal["given"] = "given"
    evicts_members: bool = "given" in EVICTING

    def stop(self) -> None:
        """Do nothing: it isn't ours."""


@dataclass(frozen=True, slots=True)
class DockerBroker:
    """A broker in a container, which testcontainers removes even if we are killed."""

    container: "KafkaContainer"
    name: Literal["docker"] = "docker"
    evicts_members: bool = "docker" in EVICTING

    @property
    def bootstrap(self) -> str:
        """Return the address that Docker mapped, ``host:port``."""
        return self.container.get_bootstrap_server()

    def stop(self) -> None:
        """Stop and remove the container."""
        self.container.stop()


def start_docker() -> DockerBroker:
    """Start a broker in Docker, through testcontainers."""
    from testcontainers.community.kafka import KafkaContainer  # noqa: PLC0415 - a development extra

    container = (
        KafkaContainer(DOCKER_IMAGE)
        .with_kraft()
        # The class sets the offsets topic's factor only; without these, transactions never start.
        .with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
        .with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
        .with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
        .with_env("KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS", "1000")
    )
    return DockerBroker(container.start(timeout=120))


def start_embedded(data_dir: Path | None = None) -> LocalBroker:
    """Start noida-db, a small broker from PyPI, on a free port.

    Args:
        data_dir: Where it keeps everything, made if missing; by default a temporary folder that
            ``stop`` removes.

    Raises:
        ConfigError: noida-db isn't installed.
        UnreachableError: The broker did not come up.
    """
    program = _noida_db()
    if program is None:
        message = f"noida-db is missing; for {_REMEDIES['embedded']}"
        raise ConfigError(message)
    home, temporary = home_for(data_dir)
    [port] = free_ports(1)
    arguments = f"start --only kafka --host {HOST} --kafka-port {port} --data-dir".split()
    broker = LocalBroker(
        name="embedded",
        command=[str(program), *arguments, str(home / "data")],
        port=port,
        data_dir=home,
        temporary=temporary,
    )
    with stopped_on_failure(broker):
        broker.start()
    return broker


def pick(name: str | None = None) -> BrokerName:
    """Return which broker to use, without starting it.

    Args:
        name: A ``BrokerName`` to force; ``None`` takes the first there is of: given by
            ``KAFKA_BOOTSTRAP_SERVERS``, Docker, the JVM, embedded.

    Raises:
        ConfigError: The name is unknown, or that broker can't run here; says what is missing.
    """
    if name is None:
        for candidate, is_there in _CHECKS.items():
            if is_there():
                return candidate
        message = "no broker can run here; any of these will do:\n" + "\n".join(
            f"  {remedy}" for remedy in _REMEDIES.values()
        )
        raise ConfigError(message)
    for known, is_there in _CHECKS.items():
        if name == known:
            if not is_there():
                message = f"broker {known!r} can't run here; for {_REMEDIES[known]}"
                raise ConfigError(message)
            return known
    message = f"unknown broker {name!r}; known are {', '.join(_CHECKS)}"
    raise ConfigError(message)


def choose(name: str | None = None) -> Broker:
    """Pick a broker as ``pick`` does, and start it in a temporary folder of its own."""
    return _STARTERS[pick(name)]()


def _noida_db() -> Path | None:
    """Return noida-db's program: beside our Python, which need not be on the path, or on it."""
    beside = Path(sys.executable).parent / "noida-db"
    if beside.exists():
        return beside
    found = shutil.which("noida-db")
    return None if found is None else Path(found)


def _has_docker_engine() -> bool:
    """Ask the engine itself: the client alone may be on the path."""
    docker = shutil.which("docker")
    if docker is None or importlib.util.find_spec("testcontainers") is None:
        return False
    try:
        asked = subprocess.run(  # noqa: S603 - Docker as found on the path, constant arguments
            [docker, "version", "--format", "{{.Server.Version}}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0


def _has_jvm() -> bool:
    has_jars = cache_dir().is_dir() or shutil.which("mvn") is not None
    return has_jars and shutil.which("java") is not None


# In order of preference.
_CHECKS: Final[Mapping[BrokerName, Callable[[], bool]]] = {
    "given": lambda: bool(os.environ.get("KAFKA_BOOTSTRAP_SERVERS")),
    "docker": _has_docker_engine,
    "jvm": _has_jvm,
    "embedded": lambda: _noida_db() is not None,
}
_STARTERS: Final[Mapping[BrokerName, Callable[[], Broker]]] = {
    "given": lambda: GivenBroker(os.environ["KAFKA_BOOTSTRAP_SERVERS"]),
    "docker": start_docker,
    "jvm": start_jvm,
    "embedded": start_embedded,
}
_REMEDIES: Final[Mapping[BrokerName, str]] = {
    "given": "a given broker: set KAFKA_BOOTSTRAP_SERVERS",
    "docker": "a broker in Docker: start Docker's engine and install testcontainers",
    "jvm": "a broker on the JVM: install Java 17 or newer and Maven",
    "embedded": "the embedded broker: pip install 'poimen-processor[demo]'",
}
