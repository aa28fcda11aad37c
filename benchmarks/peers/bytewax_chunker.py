"""Bytewax with recovery, at least once: a stateful step, with an epoch for a commit interval."""

import sys
from datetime import timedelta
from typing import NamedTuple

from bytewax import operators
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource
from bytewax.dataflow import Dataflow
from bytewax.recovery import RecoveryConfig, init_db_dir
from bytewax.testing import run_main
from chunking import MAX_TOKENS, Job, chunk_of, job_of, tokens_of


class Open(NamedTuple):
    """A session's open chunk."""

    t: int
    tokens: int
    lines: list[bytes]


def add(held: Open | None, line: bytes) -> tuple[Open, list[Open]]:
    """Add a line to its session's open chunk; return the chunk that this closes, if any."""
    tokens = tokens_of(line)
    if held is None:
        return Open(1, tokens, [line]), []
    if held.tokens + tokens > MAX_TOKENS:
        return Open(held.t + 1, tokens, [line]), [held]
    held.lines.append(line)
    return Open(held.t, held.tokens + tokens, held.lines), []


def message_of(closed: tuple[str, Open]) -> KafkaSinkMessage:
    """Return a chunk as it is produced."""
    session, chunk = closed[0].encode(), closed[1]
    return KafkaSinkMessage(key=session, value=chunk_of(session, chunk.t, chunk.lines))


def flow_of(job: Job) -> Dataflow:
    """Return the whole dataflow."""
    flow = Dataflow("chunker")
    source = KafkaSource(
        [job.bootstrap],
        [job.records_topic],
        batch_size=5_000,
        add_config={
            "max.partition.fetch.bytes": str(4 << 20),
            "queued.max.messages.kbytes": "65536",
            "fetch.queue.backoff.ms": "5",
        },
    )
    sink = KafkaSink(
        [job.bootstrap],
        job.out_topic,
        add_config={
            "linger.ms": "5",
            "batch.size": "1000000",
            "message.max.bytes": "8000000",
            "partitioner": "murmur2_random",
        },
    )
    lines = operators.input("records", flow, source)
    keyed = operators.map("key", lines, lambda it: (it.key.decode(), it.value))
    chunks = operators.stateful_flat_map("chunk", keyed, add)
    operators.output("chunks", operators.map("message", chunks, message_of), sink)
    return flow


def main() -> None:
    """Run until killed: it ends by itself only where its input does."""
    job = job_of(sys.argv[1:])
    job.state_dir.mkdir()
    init_db_dir(job.state_dir, 1)
    run_main(
        flow_of(job),
        recovery_config=RecoveryConfig(job.state_dir),
        epoch_interval=timedelta(seconds=job.commit_interval_s),
    )


if __name__ == "__main__":
    main()
