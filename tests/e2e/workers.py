"""Workers as an operator has them: processes with an environment, that come, go, hang and die."""

import asyncio
import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import ExitStack, contextmanager
from pathlib import Path

from aiokafka.errors import KafkaError

from processor.kafka.topics import create_topics
from processor.settings import Settings, env_name
from tests.e2e import asking, producing
from tests.e2e.log_reading import end_offsets, read_log
from tests.e2e.oracle import QUARTERS, judge

ROOT = Path(__file__).parents[2]
LOG_LINES_SHOWN = 40
POLL_S = 0.2
# The least that each kind of broker takes, or a little more: so the dead are noticed soon.
SESSION_TIMEOUT_S = {"jvm": 3, "docker": 3, "embedded": 6, "given": 6}


class Worker:
    """One process in a process group of its own; its output goes to a file."""

    def __init__(self, command, environment, folder):
        self.log = folder / f"worker-{uuid.uuid4().hex[:8]}.log"
        self.is_wanted = True
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command
                command,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self):
        return self._process.pid

    def is_running(self):
        return self._process.poll() is None

    def kill(self):
        """End it at once (SIGKILL), frozen or not; harmless when it is over."""
        self.is_wanted = False
        if self.is_running():
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)

    def signal(self, number):
        os.killpg(self._process.pid, number)

    def terminate(self, *, within_s=25.0):
        """Ask it to end (SIGTERM) and return its exit code."""
        self.is_wanted = False
        self.signal(signal.SIGTERM)
        return self.exit_code(within_s=within_s)

    def exit_code(self, *, within_s):
        """Wait for its end."""
        self.is_wanted = False
        try:
            return self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            msg = f"not over within {within_s:g} s; {self.tail()}"
            raise AssertionError(msg) from None

    def output(self):
        return self.log.read_text(errors="replace")

    def tail(self):
        lines = self.output().splitlines()[-LOG_LINES_SHOWN:]
        return "\n  ".join([f"{self.log.name} ends:", *lines])


class Deployment:
    """One app: topics of its own, and however many workers a test wants.

    Args:
        broker: Where.
        folder: For logs; also the workers' working directory.
        partitions: Of each topic.
        records_topic: Of another deployment, to read the same records; by default its own.
        settings: Environment of all workers, ``idle_s=0`` for ``PROCESSOR_IDLE_S``.
    """

    def __init__(self, broker, folder, *, partitions=4, records_topic=None, **settings):
        name = f"app-{uuid.uuid4().hex[:12]}"
        self.broker, self.folder, self.partitions = broker, folder, partitions
        self.bootstrap = broker.bootstrap
        self.topics = Settings(
            bootstrap_servers=self.bootstrap,
            app_id=name,
            records_topic=records_topic or f"{name}.records",
            chunks_topic=f"{name}.chunks",
            dead_letter_topic=f"{name}.dead-letter",
            positions_topic=f"{name}.positions",
        )
        self.records, self.chunks = self.topics.records_topic, self.topics.chunks_topic
        self.workers = []
        defaults = {
            "session_timeout_s": SESSION_TIMEOUT_S[broker.name],
            # The oracle counts quarters itself, and a worker starts without a vocabulary.
            "token_counter": QUARTERS,
            "http_port": 0,  # several runs may share the machine
        }
        self._settings = defaults | settings

    # Set-up and processes.

    def create_topics(self):
        asyncio.run(create_topics(self.topics, partitions=self.partitions, replication=1))

    def start(self, *command, **settings):
        """Start a worker; with the settings of all, and those given here on top."""
        command = command or ("-m", "processor", "worker")
        environment = self.environment(**settings)
        worker = Worker([sys.executable, *command], environment, self.folder)
        self.workers.append(worker)
        return worker

    def environment(self, **settings):
        plain = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("KAFKA_", "PROCESSOR_"))
        }
        return (
            plain
            | {
                "PYTHONPATH": str(ROOT),
                "KAFKA_BOOTSTRAP_SERVERS": self.bootstrap,
                "PROCESSOR_APP_ID": self.topics.app_id,
                "PROCESSOR_RECORDS_TOPIC": self.records,
                "PROCESSOR_CHUNKS_TOPIC": self.chunks,
                "PROCESSOR_DEAD_LETTER_TOPIC": self.topics.dead_letter_topic,
                "PROCESSOR_POSITIONS_TOPIC": self.topics.positions_topic,
            }
            | {env_name(name): str(value) for name, value in (self._settings | settings).items()}
        )

    def run(self, *arguments, within_s=120.0, **settings):
        """Run another verb of the app to its end, and return how it ended and what it said."""
        return subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "processor", *arguments],
            env=self.environment(**settings),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=within_s,
        )

    def kill(self, worker):
        """Kill -9 a worker; a broker that evicts nobody is told, once no other is left."""
        worker.kill()
        if not self.broker.evicts_members and not any(it.is_running() for it in self.workers):
            self.clear_group()

    def clear_group(self):
        async def clear():
            members = await asking.group_members(self.bootstrap, self.topics.app_id)
            await asking.leave_group(self.bootstrap, self.topics.app_id, members)

        asyncio.run(clear())

    def stop(self):
        for worker in self.workers:
            worker.kill()
            print(worker.tail())  # noqa: T201 - shown by pytest when the test fails

    # Records.

    def send(self, lines, **how):
        producing.send(self.bootstrap, self.records, lines, **how)

    def flow(self, lines, *, per_s):
        return producing.Flow(self.bootstrap, self.records, lines, per_s=per_s)

    # Waiting.

    def wait_until_caught_up(self, *, within_s=60.0):
        """Return once the group's offsets are at the end of the log as of now."""

        async def is_caught_up():
            ends = await end_offsets(self.bootstrap, self.records)
            offsets = await self.committed()
            return all(offsets[at] >= end for at, end in ends.items())

        self.wait("all records processed", is_caught_up, within_s=within_s)

    def wait_for_chunks(self, count, *, within_s=60.0):
        """Return once about so many chunks are there."""

        async def are_there():
            return sum((await end_offsets(self.bootstrap, self.chunks)).values()) >= count

        self.wait(f"{count} chunks", are_there, within_s=within_s)

    def wait_for_members(self, count, *, within_s=30.0):
        async def are_members():
            members = await asking.group_members(self.bootstrap, self.topics.app_id)
            return len(members) == count

        self.wait(f"{count} members in the group", are_members, within_s=within_s)

    def wait_for_output(self, worker, text, *, within_s=30.0):
        """Return once the worker's output holds ``text``."""

        async def is_there():
            return text in worker.output()

        self.wait(f"{text!r} in {worker.log.name}", is_there, within_s=within_s)

    def wait(self, what, is_so, *, within_s):
        """Poll until ``is_so``; fail when it takes too long or a worker has ended by itself."""

        async def poll():
            deadline = time.monotonic() + within_s
            while not await _is_so_by_now(is_so):
                for worker in self.workers:
                    if worker.is_wanted and not worker.is_running():
                        msg = f"a worker ended before {what}; {worker.tail()}"
                        raise AssertionError(msg)
                if time.monotonic() > deadline:
                    tails = "\n".join(it.tail() for it in self.workers if it.is_running())
                    msg = f"not within {within_s:g} s: {what}; {tails}"
                    raise AssertionError(msg)
                await asyncio.sleep(POLL_S)

        asyncio.run(poll())

    async def committed(self):
        at = asking.partitions_named(self.records, self.partitions)
        return await asking.committed_offsets(self.bootstrap, self.topics.app_id, at)

    # Judging.

    def judged(self, *, within_s=60.0):
        """Wait until all records are processed, and return the oracle's verdict, which is good."""
        self.wait_until_caught_up(within_s=within_s)
        verdict = asyncio.run(
            judge(self.bootstrap, self.records, self.chunks, self.topics.dead_letter_topic)
        )
        assert verdict.ok, str(verdict)
        return verdict

    def read(self, topic):
        """Return all messages of a topic that nobody writes to any more, read_committed."""
        return asyncio.run(read_log(self.bootstrap, topic, settled=True, patience_s=60.0))


async def _is_so_by_now(is_so):
    """Ask; a broker that has just started has no coordinator for a while."""
    try:
        return await is_so()
    except KafkaError as error:
        if not error.retriable:
            raise
        return False


@contextmanager
def deployments(broker, folder):
    """Yield a function that makes deployments; they are stopped however the test ends."""
    with ExitStack() as stack:

        def deploy(**how):
            made = Deployment(broker, folder, **how)
            stack.callback(made.stop)
            made.create_topics()
            return made

        yield deploy
