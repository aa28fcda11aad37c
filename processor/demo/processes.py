"""The project's own verbs as processes, ended however the demo ends."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.group import LeaveGroupRequest

from processor.core.errors import UnreachableError

_STOP_WITHIN_S: Final = 30.0


class Verb:
    """A running ``processor VERB``; leaving the context kills it.

    Args:
        arguments: The verb and its arguments.
        environment: Settings, beside the environment that we have.
        log: Where its stderr goes; ours when not given.
    """

    def __init__(
        self, *arguments: str, environment: Mapping[str, str], log: Path | None = None
    ) -> None:
        self._log = None if log is None else log.open("wb")
        # A group of its own, so that Ctrl-C at the terminal reaches us alone and we end it.
        self._process = subprocess.Popen(  # noqa: S603 - our own verbs
            [sys.executable, "-m", "processor", *arguments],
            env={**os.environ, **environment},
            stderr=self._log,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        if self._log is not None:
            self._log.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def kill(self) -> None:
        """End it at once, as ``kill -9`` does."""
        self._process.kill()
        self._process.wait()

    def interrupt(self) -> int:
        """Ask it to stop and return its exit code."""
        self._process.terminate()
        return self.wait()

    def wait(self) -> int:
        """Wait until it has ended and return its exit code."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(_STOP_WITHIN_S)
        self.kill()
        return self._process.returncode


async def remove_from_group(bootstrap: str, group: str, client_id: str) -> None:
    """Take a dead worker's member out of its group, for a broker that never evicts one.

    Raises:
        UnreachableError: The group has no such member, or the broker refuses.
    """
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        (response,) = await admin.describe_consumer_groups([group])
        members = {member[1]: member[0] for member in response.groups[0][5]}
        coordinator = await admin.find_coordinator(group)
        if client_id not in members:
            message = f"group {group} has no member {client_id}, only {sorted(members)}"
            raise UnreachableError(message)
        request = LeaveGroupRequest(group, members[client_id])
        answer = await admin._send_request(request, coordinator)  # noqa: SLF001 - no public way
    finally:
        await admin.close()
    if answer.error_code:
        message = f"group {group} did not let {client_id} go: error {answer.error_code}"
        raise UnreachableError(message)
