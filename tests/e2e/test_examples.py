import os
import sys
import time

import pytest

from examples.memory_agent import Store
from tests.builders import chunk_lines
from tests.e2e.histories import send_chunks
from tests.e2e.workers import POLL_S, ROOT, Worker

PARTITIONS = 1
TEXTS = [b"pear%d" % number for number in range(12)]


def asked(folder):
    path = folder / "asked.txt"
    return path.read_text().split() if path.exists() else []


@pytest.mark.needs("eviction")  # of the agents that were killed
def test_a_memory_agent_killed_at_work_goes_on_at_its_last_t(settings, tmp_path):
    """Each chunk is asked about once, but for the ones in hand at the kills."""
    send_chunks(settings, chunk_lines(*TEXTS, max_tokens=1))
    folder = tmp_path / "memories"
    command = [sys.executable, "-m", "tests.e2e.remembering", str(folder), settings.app_id]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "KAFKA_BOOTSTRAP_SERVERS": settings.bootstrap_servers,
        "PROCESSOR_CHUNKS_TOPIC": settings.chunks_topic,
        "PROCESSOR_SESSION_TIMEOUT_S": "6",  # the dead are noticed soon
    }
    for count in (3, 6, 10):  # the exit gate opens at the tenth, pear9
        agent = Worker(command, environment, tmp_path)
        until = time.monotonic() + 60
        try:
            while len(set(asked(folder))) < count:
                assert agent.is_running(), agent.tail()
                assert time.monotonic() < until, agent.tail()
                time.sleep(POLL_S / 4)
            while count == 10 and not Store(folder).load("s").is_done:
                assert time.monotonic() < until, agent.tail()
                time.sleep(POLL_S / 4)
        finally:
            agent.kill()
    kept = Store(folder).load("s")
    assert kept.memory.split() == ["pear7", "pear9"]
    assert kept.position.t >= 10
    told = asked(folder)
    assert list(dict.fromkeys(told)) == [it.decode() for it in TEXTS[:10]]
    assert len(told) <= 10 + 2
