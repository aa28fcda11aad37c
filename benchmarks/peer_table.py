"""The peers: what does the same job, or shows a limit, as far as it is installed here."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.contender import Contender, ContenderError, Run
from benchmarks.contenders import (
    COMMIT_INTERVAL_S,
    FOLDER,
    PATIENCE_S,
    committed,
    create_out_topic,
    judge_passthrough,
    no_environment,
)
from benchmarks.judging import faults_of
from benchmarks.load import PARTITIONS
from processor.core.errors import ConfigError
from processor.demo.kafka_jvm import KAFKA_FILES, KAFKA_VERSION, fetch_jars
from tests.e2e.log_reading import end_offsets, read_log

PYTHON: Final = FOLDER.parent / ".venv-peers/bin/python"
STREAMS: Final = FOLDER / "peers/kafka_streams"
STREAMS_CLASSES: Final = "kafka-streams-classes"
STREAMS_JARS: Final = f"kafka-streams-{KAFKA_VERSION}"
TERMINATED: Final = frozenset({0, -15, 128 + 15})
_VERSIONS: Final = """
import importlib.metadata, json, sys
installed = {each.name: each.version for each in importlib.metadata.distributions()}
print(json.dumps({name: installed[name] for name in sys.argv[1:] if name in installed}))
"""


class Peers(NamedTuple):
    """What can be measured here."""

    found: dict[str, Contender]
    left_out: list[str]
    """A line for each of the others, with how to install it."""

    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Script:
    """A peer's command line; its parts are the interpreter, its options, and what it runs."""

    parts: Sequence[str]
    commit_interval_s: float
    more: Sequence[str] = ()

    def __call__(self, run: Run) -> list[str]:
        """Return the command line, with the arguments that every peer takes."""
        where = [run.host.bootstrap, run.source.topic, run.out_topic, run.name]
        return [*self.parts, *where, f"{self.commit_interval_s}", f"{run.state_dir}", *self.more]


async def written(run: Run) -> int:
    """Return how many records the chunks written so far stand for: Bytewax commits no offsets."""
    ends = await end_offsets(run.host.bootstrap, run.out_topic)
    return sum(ends.values()) * run.source.records // run.source.expected.chunk_count


async def judge_peer(run: Run) -> str:
    """Compare every chunk with what must come out."""
    chunks = await read_log(run.host.bootstrap, run.out_topic, settled=True, patience_s=PATIENCE_S)
    faults = faults_of(run.source.expected, chunks)
    if faults:
        counts = ", ".join(f"{count:,} {what}" for what, count in faults.items())
        message = f"{run.out_topic} of {len(chunks):,} chunks: {counts}"
        raise ContenderError(message)
    return f"{len(chunks):,} chunks, each as it must be"


def _peer(script: Script, about: str) -> Contender:
    return Contender(
        about=about.format(f"{script.commit_interval_s:g} s"),
        command=script,
        environment=no_environment,
        prepare=create_out_topic,
        progress=committed,
        judge=judge_peer,
        statuses=TERMINATED,
    )


def _python(name: str, about: str, commit_interval_s: float = COMMIT_INTERVAL_S) -> Contender:
    parts = [f"{PYTHON}", f"{FOLDER / 'peers' / name}"]
    return _peer(Script(parts, commit_interval_s), about)


def _faust() -> Contender:
    parts = [sys.executable, f"{FOLDER / 'peers/faust_chunker.py'}"]
    script = Script(parts, 1.0, [f"{PARTITIONS}"])
    about = "at least once, commit each {}; an agent and a table in memory with its changelog"
    return replace(_peer(script, about), scale=0.1)


def _streams(classes: Path, commit_interval_s: float) -> Contender:
    options = ["-Xms1g", "-Xmx1g", "-XX:+UseParallelGC"]
    logging = f"-Dlog4j2.configurationFile={KAFKA_FILES / 'log4j2.yaml'}"
    class_path = f"{classes}:{fetch_jars(STREAMS / 'pom.xml', STREAMS_JARS)}/*"
    parts = ["java", *options, logging, "-cp", class_path, "Chunker"]
    about = f"exactly once, {{}}; one thread, RocksDB under a 64 MB cache, {' '.join(options)}"
    return replace(_peer(Script(parts, commit_interval_s), about), scale=3.0)


PYTHON_PEERS: Final = {
    "librdkafka": (
        "confluent-kafka",
        replace(
            _python("librdkafka_passthrough.py", "exactly once, {}; does nothing to the records"),
            judge=judge_passthrough,
            scale=3.0,
        ),
    ),
    "quix": ("quixstreams", _python("quix_chunker.py", "exactly once, {}")),
    "quix-1s": ("quixstreams", _python("quix_chunker.py", "exactly once, {}", 1.0)),
    "bytewax": (
        "bytewax",
        replace(
            _python("bytewax_chunker.py", "at least once, recovery each {}", 1.0), progress=written
        ),
    ),
}
STREAMS_PEERS: Final = {"kafka-streams": COMMIT_INTERVAL_S, "kafka-streams-1s": 1.0}
NAMES: Final = (*STREAMS_PEERS, *PYTHON_PEERS, "faust")


def find_peers(folder: Path, wanted: Iterable[str]) -> Peers:
    """Return the wanted peers that are installed, and say of the others how they would be.

    Args:
        folder: Where the Java peer is compiled to.
        wanted: Names out of ``NAMES``.
    """
    found: dict[str, Contender] = {}
    left_out = []
    versions = _installed({package for package, _ in PYTHON_PEERS.values()})
    streams = sorted(set(wanted) & STREAMS_PEERS.keys())
    if streams:
        try:
            classes = compile_streams(folder)
        except ConfigError as error:
            left_out.append(f"{', '.join(streams)}: {error}")
        else:
            versions["kafka-streams"] = KAFKA_VERSION
            found |= {name: _streams(classes, STREAMS_PEERS[name]) for name in streams}
    for name, (package, peer) in PYTHON_PEERS.items():
        if name in wanted and package in versions:
            found[name] = peer
        elif name in wanted:
            left_out.append(f"{name}: make bench-peers installs {package}")
    if "faust" in wanted:
        found["faust"] = _faust()
    return Peers(found, left_out, versions)


def compile_streams(folder: Path) -> Path:
    """Compile the Java peer; return the folder of its classes.

    Raises:
        ConfigError: There is no javac, which a JRE alone has not; or Maven is missing or failed.
    """
    javac = shutil.which("javac")
    if javac is None:
        message = "there is no javac: install a JDK, not a JRE alone"
        raise ConfigError(message)
    jars, classes = fetch_jars(STREAMS / "pom.xml", STREAMS_JARS), folder / STREAMS_CLASSES
    subprocess.run(  # noqa: S603 - javac as found on the path, with our own arguments
        [javac, "-d", f"{classes}", "-cp", f"{jars}/*", f"{STREAMS / 'Chunker.java'}"], check=True
    )
    return classes


def _installed(packages: set[str]) -> dict[str, str]:
    """Return the versions of those packages that the peers' environment has."""
    if not PYTHON.exists():
        return {}
    asked = subprocess.run(  # noqa: S603 - our own environment
        [PYTHON, "-c", _VERSIONS, *sorted(packages)], check=True, capture_output=True, text=True
    )
    versions: dict[str, str] = json.loads(asked.stdout)
    return versions
