"""Measures a process from outside: its CPU, its memory, and how far its group has come."""

import asyncio
import os
import time
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

POLL_S = 0.2
LIMIT_S = 300.0
STOP_S = 30.0
LOG_LINES_SHOWN = 30

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ContenderError(Exception):
    """What is measured failed, and so has no figure."""


@dataclass(frozen=True, slots=True)
class Sample:
    """How far a process was at one time."""

    at_s: float
    cpu_s: float
    records: int


@dataclass(frozen=True, slots=True)
class Figures:
    """One run. The first two leave out the start: they count from the first progress seen."""

    records_per_cpu_s: float
    records_per_s: float
    whole_records_per_cpu_s: float
    started_after_s: float
    peak_rss_mb: float


def figures(start: Sample, first: Sample, last: Sample, rss_mb: float) -> Figures:
    """Work out a run's figures from its start, its first progress and its end.

    Raises:
        ContenderError: All came between two looks at it; there is nothing to divide by.
    """
    records, cpu_s = last.records - first.records, last.cpu_s - first.cpu_s
    if records <= 0 or cpu_s <= 0:
        message = f"done within {POLL_S:g} s of its first progress; give it more --records"
        raise ContenderError(message)
    return Figures(
        records_per_cpu_s=records / cpu_s,
        records_per_s=records / (last.at_s - first.at_s),
        whole_records_per_cpu_s=last.records / last.cpu_s,
        started_after_s=first.at_s - start.at_s,
        peak_rss_mb=rss_mb,
    )


async def committed(admin: AIOKafkaAdminClient, group: str, topic: str) -> int:
    """Return how many records of ``topic`` the group has committed; 0 while nobody knows yet."""
    try:
        offsets = await admin.list_consumer_group_offsets(group)
    except KafkaError:
        return 0  # the first group of a broker waits for its coordinator; LIMIT_S bounds this
    return sum(max(each.offset, 0) for at, each in offsets.items() if at.topic == topic)


async def measure(
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    progress: Callable[[], Awaitable[int]],
    total: int,
) -> Figures:
    """Run ``command`` until ``progress`` reaches ``total`` records, then stop it by SIGTERM.

    Raises:
        ContenderError: It ended early, took longer than ``LIMIT_S``, or did not stop in order.
    """
    with log.open("wb") as out:
        began_at = time.monotonic()
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, **environment}, stdout=out, stderr=out
        )
    try:
        start = Sample(began_at, 0.0, 0)
        first, last = await _samples(process, progress, total, log)
        rss_mb = _peak_rss_mb(process.pid)
        process.terminate()
        try:
            status = await asyncio.wait_for(process.wait(), STOP_S)
        except TimeoutError:
            raise ContenderError(_complaint(f"did not stop within {STOP_S:g} s", log)) from None
        if status != 0:
            raise ContenderError(_complaint(f"ended with status {status} after SIGTERM", log))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return figures(start, first, last, rss_mb)


async def _samples(
    process: Process, progress: Callable[[], Awaitable[int]], total: int, log: Path
) -> tuple[Sample, Sample]:
    """Return a sample of the first progress and one of the end."""
    first: Sample | None = None
    limit = time.monotonic() + LIMIT_S
    while True:
        records = await progress()
        if process.returncode is not None:
            raise ContenderError(
                _complaint(f"ended with status {process.returncode} at {records:,} records", log)
            )
        sample = Sample(time.monotonic(), cpu_s(process.pid), records)
        if first is None and records > 0:
            first = sample
        if first is not None and records >= total:
            return first, sample
        if sample.at_s > limit:
            raise ContenderError(
                _complaint(f"only {records:,} of {total:,} records in {LIMIT_S:g} s", log)
            )
        await asyncio.sleep(POLL_S)


def _complaint(what: str, log: Path) -> str:
    tail = log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    return "\n  ".join([f"{what}; its output ends:", *tail])


def cpu_s(pid: int) -> float:
    """Return user and system time of all threads (proc(5), fields 14 and 15 of stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def _peak_rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    message = f"no VmHWM in /proc/{pid}/status"
    raise ContenderError(message)
