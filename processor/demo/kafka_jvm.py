"""Apache Kafka on the JVM, its jars fetched once by Maven into the user's cache."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from processor.core.errors import ConfigError
from processor.demo.local_broker import HOST, LocalBroker, free_ports, home_for, stopped_on_failure

KAFKA_VERSION: Final = "4.1.1"
KAFKA_JARS: Final = f"kafka-{KAFKA_VERSION}"
KAFKA_FILES: Final = Path(__file__).parent / "kafka"
# Any well-formed id will do: every broker here is a cluster of its own.
CLUSTER_ID: Final = "4L6g3nShT-eMCtK--X86sw"

# One node needs every replication factor at 1, or InitProducerId waits for three brokers for ever.
# Small internal topics and no initial rebalance delay: tests start many groups. A short broker
# session: a broker that was killed may not register again before its old session has ended.
_SERVER_PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={data_dir}/data
auto.create.topics.enable=false
num.partitions=4
offsets.topic.num.partitions=8
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=8
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
log.cleaner.dedupe.buffer.size=8388608
"""


def start_jvm(
    data_dir: Path | None = None,
    port: int | None = None,
    overrides: Mapping[str, str] | None = None,
    *,
    format_options: Sequence[str] = (),
    java_options: Sequence[str] = (),
) -> LocalBroker:
    """Start Apache Kafka on the JVM: KRaft, one node.

    Args:
        data_dir: Where it keeps everything, made if missing; by default a temporary folder that
            ``stop`` removes.
        port: Where clients connect; by default a free one.
        overrides: Properties of the broker on top of ours, such as more listeners.
        format_options: Of the formatting of its data, such as users to know from the start.
        java_options: Of the JVM, such as system properties.

    Raises:
        ConfigError: Java or Maven is missing, or Maven or the formatting of the data failed.
        UnreachableError: The broker did not come up.
    """
    java = shutil.which("java")
    if java is None:
        message = "a broker on the JVM needs Java 17 or newer: install java"
        raise ConfigError(message)
    jars = fetch_jars()
    home, temporary = home_for(data_dir)
    free_port, controller_port = free_ports(2)
    port = free_port if port is None else port
    properties = home / "server.properties"
    text = _SERVER_PROPERTIES.format(
        host=HOST, port=port, controller_port=controller_port, data_dir=home
    )
    # Of a property that stands twice Java takes the last.
    text += "".join(f"{name}={value}\n" for name, value in (overrides or {}).items())
    properties.write_text(text)
    run = [java, "-Xmx768m", f"-Dlog4j2.configurationFile={KAFKA_FILES / 'log4j2.yaml'}"]
    run += [*java_options, "-cp", f"{jars}/*"]
    broker = LocalBroker(
        name="jvm",
        command=[*run, "kafka.Kafka", str(properties)],
        port=port,
        data_dir=home,
        temporary=temporary,
    )
    with stopped_on_failure(broker):
        _format(run, properties, format_options)
        broker.start()
    return broker


def cache_dir(name: str = KAFKA_JARS) -> Path:
    """Return where jars are kept under ``name``, by default the broker's, there or not yet."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "poimen-processor" / name


def fetch_jars(pom: Path = KAFKA_FILES / "pom.xml", name: str = KAFKA_JARS) -> Path:
    """Return a folder with the jars of ``pom``, by default the broker's, fetched the first time.

    The folder appears whole or not at all, so that two processes may fetch at once and a cut one
    leaves nothing that looks complete.

    Raises:
        ConfigError: Maven is missing or could not fetch them; the message holds what it said.
    """
    jars = cache_dir(name)
    if jars.is_dir():
        return jars
    maven = shutil.which("mvn")
    if maven is None:
        message = "Apache Kafka on the JVM is fetched by Maven: install mvn"
        raise ConfigError(message)
    jars.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fetching-", dir=jars.parent) as scratch:
        fetched = Path(scratch) / "jars"
        _run_maven(maven, pom, fetched)
        try:
            fetched.rename(jars)
        except OSError:
            # Another process was first, and its folder is as good as ours.
            if not jars.is_dir():
                raise
    return jars


def _run_maven(maven: str, pom: Path, output_dir: Path) -> None:
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    command = [maven, "--quiet", "--batch-mode", f"--file={pom}", *goal]
    command.append(f"-DoutputDirectory={output_dir}")
    _run(command, f"Maven could not fetch what {pom} names")


def _format(run: list[str], properties: Path, options: Sequence[str]) -> None:
    tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted", *options]
    command = [*run, *tool, "--cluster-id", CLUSTER_ID, "--config", str(properties)]
    _run(command, f"Apache Kafka could not format {properties.parent}")


def _run(command: list[str], complaint: str) -> None:
    """Run a program to its end.

    Raises:
        ConfigError: It fails; the message is the complaint, with what it said.
    """
    done = subprocess.run(  # noqa: S603 - found on the path, with our own arguments
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        message = f"{complaint}:\n{done.stdout.strip()}"
        raise ConfigError(message)
