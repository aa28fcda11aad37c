"""The worker and its pass-through: how each is started, followed and judged."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from aiokafka.errors import KafkaError

from benchmarks.contender import Contender, ContenderError, Run
from benchmarks.judging import sums_of
from benchmarks.load import create_topic
from tests.e2e.log_reading import read_log
from tests.e2e.oracle import judge

COMMIT_INTERVAL_S: Final = 0.1
PATIENCE_S: Final = 60.0
#: They commit each 0.5 s in a backlog: over fewer records than this few steps of progress are left.
SCALE: Final = 2.0
BASELINE: Final = "passthrough"
FOLDER: Final = Path(__file__).resolve().parent


async def create_out_topic(run: Run) -> None:
    """Create the output topic."""
    await create_topic(run.host.bootstrap, run.out_topic)


async def create_nothing(run: Run) -> None:
    """Leave it to the worker, which creates its topics itself."""


def no_environment(run: Run) -> dict[str, str]:
    """Return nothing."""
    return {}


def worker_command(run: Run) -> list[str]:
    """Return the worker's command line: all it needs is in its environment."""
    return [sys.executable, "-m", "processor", "worker"]


def worker_environment(counter: str, compression: str) -> Callable[[Run], dict[str, str]]:
    """Return what gives the worker's environment: the defaults, as far as the run leaves them."""

    def environment(run: Run) -> dict[str, str]:
        return {
            "KAFKA_BOOTSTRAP_SERVERS": run.host.bootstrap,
            "PROCESSOR_APP_ID": run.name,
            "PROCESSOR_RECORDS_TOPIC": run.source.topic,
            "PROCESSOR_CHUNKS_TOPIC": run.out_topic,
            "PROCESSOR_DEAD_LETTER_TOPIC": run.dead_letter_topic,
            "PROCESSOR_COMMIT_INTERVAL_S": f"{COMMIT_INTERVAL_S}",
            "PROCESSOR_TOKEN_COUNTER": counter,
            "PROCESSOR_COMPRESSION": compression,
        }

    return environment


def passthrough_command(run: Run) -> list[str]:
    """Return the pass-through's command line."""
    where = [run.host.bootstrap, run.source.topic, run.out_topic, run.name]
    return [sys.executable, str(FOLDER / "passthrough.py"), *where, f"{COMMIT_INTERVAL_S}"]


async def committed(run: Run) -> int:
    """Return how many records the group has committed."""
    try:
        offsets = await run.host.admin.list_consumer_group_offsets(run.name)
    except KafkaError:
        return 0  # the first group of a broker waits for its coordinator; a time limit bounds this
    return sum(max(each.offset, 0) for at, each in offsets.items() if at.topic == run.source.topic)


async def judge_passthrough(run: Run) -> str:
    """Compare, partition by partition, all bytes that went in and came out."""
    wanted = run.source.expected.sums
    blobs = await read_log(run.host.bootstrap, run.out_topic, settled=True, patience_s=PATIENCE_S)
    if sums_of(blobs) != wanted:
        message = f"{run.out_topic} does not hold the bytes of {run.source.topic}"
        raise ContenderError(message)
    return f"all bytes of {len(wanted)} partitions came through, in order"


async def judge_worker(run: Run) -> str:
    """Let the tests' oracle judge every chunk."""
    verdict = await judge(
        run.host.bootstrap,
        run.source.topic,
        run.out_topic,
        run.dead_letter_topic,
        patience_s=PATIENCE_S,
    )
    if not verdict.ok or verdict.dead_letters:
        raise ContenderError(str(verdict))
    return str(verdict)


def _worker(counter: str = "chars_over_four", *, compression: str, processes: int = 1) -> Contender:
    together = "; two processes, their sum" if processes > 1 else ""
    return Contender(
        about=f"exactly once, {COMMIT_INTERVAL_S:g} s; `{counter}`, `{compression}`{together}",
        command=worker_command,
        environment=worker_environment(counter, compression),
        prepare=create_nothing,
        progress=committed,
        judge=judge_worker,
        processes=processes,
        scale=SCALE,
    )


OURS: Final = {
    BASELINE: Contender(
        about=f"aiokafka, exactly once, {COMMIT_INTERVAL_S:g} s; does nothing to the records",
        command=passthrough_command,
        environment=no_environment,
        prepare=create_out_topic,
        progress=committed,
        judge=judge_passthrough,
        scale=SCALE,
    ),
    "worker": _worker(compression="none"),
    "worker-qwen2.5": _worker("qwen2.5", compression="none"),
    "worker-zstd": _worker(compression="zstd"),
    "worker-twice": _worker(compression="none", processes=2),
}
