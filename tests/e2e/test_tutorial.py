"""docs/tutorial.md, typed as it stands."""

import os
import re
import subprocess
import sys
import time
import uuid

import pytest

from tests.documents import ROOT
from tests.e2e.workers import POLL_S, SESSION_TIMEOUT_S, Worker

TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
#: What a test has already: an environment and a broker.
THERE = ("make ", ". .venv", "noida-db ")


def blocks(kind, text):
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def scripts(text):
    """Return what is typed, a script for each block."""
    for block in blocks("console", text):
        typed = [it.removeprefix("$ ") for it in block.splitlines()]
        if script := "\n".join(it for it in typed if not it.startswith(THERE)):
            yield script


@pytest.fixture
def environment(broker, tmp_path):
    name = f"tutorial-{uuid.uuid4().hex[:12]}"
    verb = tmp_path / "bin" / "processor"
    verb.parent.mkdir()
    verb.write_text(f'#!/bin/sh\nexec {sys.executable} -m processor "$@"\n')
    verb.chmod(0o755)
    return os.environ | {
        "PATH": os.pathsep.join([str(verb.parent), *os.get_exec_path()]),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONUNBUFFERED": "1",
        "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap,
        "PROCESSOR_RECORDS_TOPIC": f"{name}.records",
        "PROCESSOR_CHUNKS_TOPIC": f"{name}.chunks",
        "PROCESSOR_DEAD_LETTER_TOPIC": f"{name}.dead-letter",
        "PROCESSOR_SESSION_TIMEOUT_S": str(SESSION_TIMEOUT_S[broker.name]),
        "PROCESSOR_HTTP_PORT": "0",
        "NAME": name,
    }


def await_words(words, worker):
    until = time.monotonic() + 60
    while words not in worker.output():
        assert worker.is_running(), worker.tail()
        assert time.monotonic() < until, worker.tail()
        time.sleep(POLL_S)


def test_whoever_types_the_tutorial_reads_a_chunk_at_its_end(environment, tmp_path):
    # On a broker that others share, apps and groups need names of their own.
    text = re.sub(r"\b(PROCESSOR_APP_ID=|group=\")tutorial", rf"\1{environment['NAME']}", TUTORIAL)
    running, printed = [], ""
    try:
        for script in scripts(text):
            if script.endswith("processor worker"):
                running.append(Worker(["/bin/sh", "-ec", script], environment, tmp_path))
                await_words("partition is ready", running[-1])
                continue
            printed += subprocess.run(  # noqa: S603 - our own page
                ["/bin/sh", "-ec", script],
                env=environment,
                cwd=tmp_path,
                check=True,
                capture_output=True,
                text=True,
                timeout=60,
            ).stdout
        assert "end, final" in printed
        assert "verified: 2 records in 1 sessions -> 1 chunks; 0 missing" in printed
        (reader,) = blocks("python", text)
        running.append(Worker([sys.executable, "-c", reader], environment, tmp_path))
        await_words("  assistant: hi", running[-1])
    finally:
        for it in running:
            it.kill()
