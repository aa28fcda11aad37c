"""Quix Streams, exactly once: a stateful function over a session's open chunk."""

import struct
import sys

from chunking import MAX_TOKENS, head_of, job_of, tokens_of
from quixstreams import Application, State

HEAD = struct.Struct(">II")  # t and tokens, before the lines
OPEN = "open"


def add(line: bytes, session: bytes, _at: int, _headers: object, state: State) -> list[bytes]:
    """Add a line to its session's open chunk; return the chunk that this closes, if any.

    The chunk is one value of bytes, which Quix keeps in memory until the next checkpoint.
    """
    tokens, held = tokens_of(line), state.get_bytes(OPEN)
    if held is None:
        state.set_bytes(OPEN, HEAD.pack(1, tokens) + line)
        return []
    t, sum_tokens = HEAD.unpack_from(held)
    lines = held[HEAD.size :]
    if sum_tokens + tokens > MAX_TOKENS:
        state.set_bytes(OPEN, HEAD.pack(t + 1, tokens) + line)
        return [head_of(session, t) + lines + b"]}"]
    state.set_bytes(OPEN, HEAD.pack(t, sum_tokens + tokens) + lines + b"," + line)
    return []


def main() -> None:
    """Run until SIGTERM."""
    job = job_of(sys.argv[1:])
    app = Application(
        broker_address=job.bootstrap,
        consumer_group=job.group,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=job.commit_interval_s,
        state_dir=job.state_dir,
        loglevel="WARNING",
        consumer_extra_config={
            "fetch.queue.backoff.ms": 5,
            "queued.max.messages.kbytes": 65_536,
            "max.partition.fetch.bytes": 4 << 20,
        },
        producer_extra_config={
            "linger.ms": 10,
            "batch.size": 1_000_000,
            "message.max.bytes": 8_000_000,
            "queue.buffering.max.kbytes": 262_144,
            "partitioner": "murmur2_random",
        },
    )
    records = app.topic(job.records_topic, key_deserializer="bytes", value_deserializer="bytes")
    chunks = app.topic(job.out_topic, key_serializer="bytes", value_serializer="bytes")
    frame = app.dataframe(records).apply(add, stateful=True, expand=True, metadata=True)
    frame.to_topic(chunks)
    app.run()


if __name__ == "__main__":
    main()
