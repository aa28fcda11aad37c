"""How far a verification has come, in a file: a line for each partition that is proved.

To go on within a partition would take all that its sessions stand at; behind one it takes what was
found, and by which keys a session on two partitions is known.
"""

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from processor.core.errors import ConfigError
from processor.proof.report import Report


class Position:
    """What was found on the partitions that an earlier run has proved.

    Args:
        path: The file; made anew if it is not there.
        about: What is verified, and how: another run goes on with the same alone.

    Raises:
        ConfigError: The file is of another verification, or none of ours.
    """

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        self._path = path
        lines = path.read_bytes().split(b"\n") if path.exists() else []
        # A line that was being written when the run was killed has no end.
        rows = [self._row(line) for line in lines[:-1]]
        if rows and rows[0] != {"verify": about}:
            message = f"{path} is of another verification: {rows[0]}; choose another file"
            raise ConfigError(message)
        try:
            self._done = {it["partition"]: _found(it) for it in rows[1:]}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            message = f"{path} is no file of verify --resume: {error!r}; choose another file"
            raise ConfigError(message) from error
        path.write_bytes(b"".join(line + b"\n" for line in lines[:-1]))
        if not rows:
            self._append({"verify": about})

    def of(self, partition: int) -> tuple[Report, bytes] | None:
        """Return what ``keep`` was given for a partition, if it was."""
        return self._done.get(partition)

    def keep(self, partition: int, report: Report, keys: bytes) -> None:
        """Keep what was found on a partition, and the digests of its keys."""
        text = base64.b64encode(keys).decode()
        self._append({"partition": partition, "report": report.as_json(), "keys": text})

    def end(self) -> None:
        """Remove the file: all is proved."""
        self._path.unlink()

    def _append(self, row: Mapping[str, Any]) -> None:
        with self._path.open("ab") as stream:
            stream.write(json.dumps(row).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())

    def _row(self, line: bytes) -> dict[str, Any]:
        try:
            row: dict[str, Any] = json.loads(line)
        except (ValueError, RecursionError) as error:
            message = f"{self._path} is no file of verify --resume: {error}; choose another file"
            raise ConfigError(message) from error
        return row


def _found(row: Mapping[str, Any]) -> tuple[Report, bytes]:
    return Report.from_json(row["report"]), base64.b64decode(row["keys"], validate=True)
