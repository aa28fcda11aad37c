"""A broker as a child process: started until it answers, killed, frozen, started again.

Nothing outlives us. Beside each broker sleeps a guard, a shell that reads a pipe whose other end
only we hold: however we end, ``kill -9`` included, the pipe closes and the guard kills the broker's
process group.
"""

import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from processor.core.errors import UnreachableError
from processor.demo.kinds import EVICTING, BrokerName

HOST: Final = "127.0.0.1"
LOG_LINES_SHOWN: Final = 20
POLL_S: Final = 0.1

_GUARD: Final = 'read _; kill -s KILL -- "-$1"'
_FREEZE_WITHIN_S: Final = 5.0
_METADATA_KEY: Final = 3
# Version 1 with an empty list asks for brokers alone, and every broker since 0.10 knows it.
_METADATA_REQUEST: Final = struct.pack(">ihhihi", 14, _METADATA_KEY, 1, 0, -1, 0)
_METADATA_HEAD: Final = struct.Struct(">iii")  # size, correlation id, number of brokers


def free_ports(count: int) -> list[int]:
    """Return ``count`` different ports that nothing listens on, on the loopback address."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]


def answers(port: int) -> bool:
    """Tell whether a Kafka broker on ``port`` names at least one live broker in its metadata.

    A listening socket is not enough: a JVM broker accepts connections before it is registered.
    """
    try:
        with socket.create_connection((HOST, port), timeout=2) as connection:
            connection.sendall(_METADATA_REQUEST)
            head = connection.makefile("rb").read(_METADATA_HEAD.size)
    except OSError:
        return False
    return len(head) == _METADATA_HEAD.size and _METADATA_HEAD.unpack(head)[2] > 0


def home_for(data_dir: Path | None) -> tuple[Path, bool]:
    """Return the folder to use and whether it is temporary."""
    if data_dir is None:
        return Path(tempfile.mkdtemp(prefix="processor-broker-")), True
    data_dir.mkdir(parents=True, exist_ok=True)
    return data_dir, False


@dataclass
class LocalBroker:
    """A broker in a process group of its own, on a loopback port.

    Every method blocks; from a coroutine, call it through ``asyncio.to_thread``.

    Attributes:
        name: Kind of broker, ``jvm`` or ``embedded``.
        command: What runs it, in the foreground.
        port: Where it listens for clients.
        data_dir: Holds its data and ``broker.log``; kept by ``kill`` and ``start``.
        temporary: ``data_dir`` is ours, and ``stop`` removes it.
        patience_s: How long ``start`` waits for an answer.
    """

    name: BrokerName
    command: Sequence[str]
    port: int
    data_dir: Path
    temporary: bool
    patience_s: float = 60.0
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False)
    _guard: subprocess.Popen[bytes] | None = field(default=None, init=False, repr=False)

    @property
    def bootstrap(self) -> str:
        """Return the address for clients, ``host:port``."""
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        """Return its process id; raises RuntimeError while it isn't running."""
        return self._running().pid

    @property
    def evicts_members(self) -> bool:
        """Tell whether it drops group members that stop sending heartbeats."""
        return self.name in EVICTING

    @property
    def log(self) -> Path:
        """Return the file that holds what the broker prints."""
        return self.data_dir / "broker.log"

    def start(self) -> None:
        """Start the broker and return once it answers.

        Raises:
            UnreachableError: It ended or did not answer within ``patience_s``; the message holds
                the end of its log, and nothing is left running.
        """
        if self._process is not None:
            message = f"the {self.name} broker on {self.bootstrap} already runs: kill() it first"
            raise RuntimeError(message)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own command, no shell
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(  # noqa: S603 - a constant script and a process id
            ["/bin/sh", "-c", _GUARD, "broker-guard", str(self._process.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self._wait_until_it_answers(self._process)
        except BaseException:
            self.kill()
            raise

    def _wait_until_it_answers(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self.patience_s
        while not answers(self.port):
            # Not poll(): it would free the process id while the guard may still kill by it.
            ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is not None:
                raise UnreachableError(self._complaint(f"ended with status {ended.si_status}"))
            if time.monotonic() > deadline:
                raise UnreachableError(self._complaint(f"gave no answer in {self.patience_s:g} s"))
            time.sleep(POLL_S)

    def _complaint(self, what: str) -> str:
        tail = self.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        lines = "\n".join(f"  {line}" for line in tail) or "  (nothing)"
        return f"the {self.name} broker on {self.bootstrap} {what}; its log ends:\n{lines}"

    def kill(self) -> None:
        """Kill -9 the broker and all it started; does nothing when it isn't running."""
        process, guard = self._process, self._guard
        self._process = self._guard = None
        if guard is not None:
            # Before the broker is reaped: a guard must never kill by a process id in new hands.
            guard.kill()
            guard.communicate()
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def freeze(self) -> None:
        """Stop the broker in its tracks (SIGSTOP): connections stay open, nothing answers."""
        self._signal(signal.SIGSTOP)
        # Sent is not taken yet: a JVM of many threads may answer for some milliseconds more.
        deadline_s = time.monotonic() + _FREEZE_WITHIN_S
        while not self._is_stopped() and time.monotonic() < deadline_s:
            time.sleep(0.01)

    def thaw(self) -> None:
        """Let a frozen broker go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            message = f"the {self.name} broker on {self.bootstrap} isn't running: start() it first"
            raise RuntimeError(message)
        return self._process

    def _signal(self, number: signal.Signals) -> None:
        os.killpg(self._running().pid, number)

    def _is_stopped(self) -> bool:
        """Tell whether every thread of the process group is stopped; needs Linux's /proc."""
        group = str(self._process.pid) if self._process is not None else ""
        states = set()
        for stat in Path("/proc").glob("[0-9]*/task/*/stat"):
            with contextlib.suppress(OSError):  # it has ended since it was listed
                state, _, its_group, *_ = stat.read_text().rpartition(")")[2].split()
                if its_group == group:
                    states.add(state)
        return states <= {"T", "Z"}

    def stop(self) -> None:
        """End the broker for good and remove its data if they were ours."""
        self.kill()
        if self.temporary:
            shutil.rmtree(self.data_dir)


@contextlib.contextmanager
def stopped_on_failure(broker: LocalBroker) -> Iterator[None]:
    """Stop ``broker`` if the body raises, so that a failed start leaves nothing behind."""
    try:
        yield
    except BaseException:
        broker.stop()
        raise
