"""Measures processes from outside: their CPU, their memory, and how far their group has come."""

import asyncio
import contextlib
import os
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from benchmarks.contender import Contender, ContenderError, Run

POLL_S = 0.2
FEWEST_STEPS = 3
LIMIT_S = 300.0
STOP_S = 30.0
LOG_LINES_SHOWN = 30

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Sample:
    """How far a contender was at one time."""

    at_s: float
    cpu_s: float
    records: int


@dataclass(frozen=True, slots=True)
class Figures:
    """One run. The rates leave out start and end, the warm ones the first half too."""

    records: int
    records_per_cpu_s: float
    warm_records_per_cpu_s: float
    records_per_s: float
    warm_records_per_s: float
    whole_records_per_cpu_s: float
    """Start and end included."""

    started_after_s: float
    peak_rss_mb: float
    broker_cpu_s: float | None = None
    """From the start to the last record; unknown of a broker that was given."""

    changelog_ratio: float | None = None
    """Bytes of its topics other than the output, on the broker's disk, per byte of input."""


def figures(samples: Sequence[Sample], rss_mb: float) -> Figures:
    """Work out a run's figures.

    Rates go from a step of progress to another, the end left out: at each of them as much is under
    way, with its CPU spent already, and at the end nothing.

    Args:
        samples: Of the start, with no record done, to the end, when all are.
        rss_mb: The most memory it took.

    Raises:
        ContenderError: There were not steps enough.
    """
    steps = [now for before, now in pairwise(samples) if now.records > before.records]
    if len(steps) < FEWEST_STEPS:
        message = f"all done in {len(steps)} steps of progress; give it more --records"
        raise ContenderError(message)
    *earlier, last, end = steps
    first = earlier[0]
    half = min(earlier, key=lambda step: abs(step.records - last.records / 2))
    return Figures(
        records=end.records,
        records_per_cpu_s=(last.records - first.records) / (last.cpu_s - first.cpu_s),
        warm_records_per_cpu_s=(last.records - half.records) / (last.cpu_s - half.cpu_s),
        records_per_s=(last.records - first.records) / (last.at_s - first.at_s),
        warm_records_per_s=(last.records - half.records) / (last.at_s - half.at_s),
        whole_records_per_cpu_s=end.records / end.cpu_s,
        started_after_s=first.at_s - samples[0].at_s,
        peak_rss_mb=rss_mb,
    )


@contextlib.asynccontextmanager
async def running(contender: Contender, run: Run) -> AsyncIterator[list[Process]]:
    """Start the contender's processes, and stop them by SIGTERM.

    Raises:
        ContenderError: One did not stop within ``STOP_S``, or not in order.
    """
    await contender.prepare(run)
    environment = {**os.environ, **contender.environment(run)}
    processes: list[Process] = []
    try:
        with run.log.open("wb") as out:
            processes += [
                await asyncio.create_subprocess_exec(
                    *contender.command(run), env=environment, stdout=out, stderr=out
                )
                for _ in range(contender.processes)
            ]
        yield processes
        for process in processes:
            await _stop(process, contender, run)
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _stop(process: Process, contender: Contender, run: Run) -> None:
    if process.returncode is None:
        process.terminate()
    try:
        status = await asyncio.wait_for(process.wait(), STOP_S)
    except TimeoutError:
        raise ContenderError(complaint(f"did not stop within {STOP_S:g} s", run)) from None
    if status not in contender.statuses:
        raise ContenderError(complaint(f"ended with status {status} after SIGTERM", run))


async def measure(contender: Contender, run: Run) -> Figures:
    """Run the contender until it is done with all records of its source.

    Raises:
        ContenderError: It ended early, took longer than ``LIMIT_S``, or did not stop in order.
    """
    samples = [Sample(time.monotonic(), 0.0, 0)]
    broker_before = _broker_cpu_s(run)
    limit = samples[0].at_s + LIMIT_S
    async with running(contender, run) as processes:
        while samples[-1].records < run.source.records:
            await asyncio.sleep(POLL_S)
            records = await contender.progress(run)
            check_alive(processes, run, records)
            spent = sum(cpu_s(process.pid) for process in processes)
            samples.append(Sample(time.monotonic(), spent, records))
            if samples[-1].at_s > limit:
                what = f"only {records:,} of {run.source.records:,} records in {LIMIT_S:g} s"
                raise ContenderError(complaint(what, run))
        broker_after = _broker_cpu_s(run)
        rss_mb = sum(_peak_rss_mb(process.pid) for process in processes)
    found = figures(samples, rss_mb)
    broker = None if broker_before is None else (broker_after or 0.0) - broker_before
    return replace(found, broker_cpu_s=broker, changelog_ratio=changelog_ratio(run))


def check_alive(processes: Sequence[Process], run: Run, records: int) -> None:
    """Do nothing while all run; raises ContenderError when one has ended."""
    for process in processes:
        if process.returncode is not None:
            what = f"ended with status {process.returncode} at {records:,} records"
            raise ContenderError(complaint(what, run))


def complaint(what: str, run: Run) -> str:
    """Say what was wrong, and what its processes said."""
    tail = run.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
    return "\n  ".join([f"{run.name} {what}; its output ends:", *tail])


def cpu_s(pid: int) -> float:
    """Return user and system time of all threads (proc(5), fields 14 and 15 of stat)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def _broker_cpu_s(run: Run) -> float | None:
    return None if run.host.pid is None else cpu_s(run.host.pid)


def changelog_ratio(run: Run) -> float | None:
    """Return what the run's topics hold beside its input and output, per byte of input."""
    if run.host.data_dir is None:
        return None
    others = tuple(f"{it}-" for it in (run.source.topic, run.out_topic, run.dead_letter_topic))
    held = sum(
        segment.stat().st_size
        for partition in (run.host.data_dir / "data").iterdir()
        if run.name in partition.name and not partition.name.startswith(others)
        for segment in partition.glob("*.log")
    )
    return held / run.source.value_bytes


def _peak_rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    message = f"no VmHWM in /proc/{pid}/status"
    raise ContenderError(message)
