"""Faust's own way, at least once: an agent that keeps each session's open chunk in a table."""

import sys

import faust
from chunking import MAX_TOKENS, Job, chunk_of, job_of, tokens_of


def app_of(job: Job, partitions: int) -> faust.App:
    """Return the app with its one agent."""
    app = faust.App(
        job.group,
        broker=f"kafka://{job.bootstrap}",
        broker_commit_interval=job.commit_interval_s,
        consumer_auto_offset_reset="earliest",
        datadir=job.state_dir,
        store="memory://",
        topic_partitions=partitions,
        web_enabled=False,
    )
    raw = {"key_serializer": "raw", "value_serializer": "raw"}
    records = app.topic(job.records_topic, key_type=bytes, value_type=bytes, **raw)
    chunks = app.topic(job.out_topic, key_type=bytes, value_type=bytes, **raw)
    table = app.Table("open", default=lambda: {"t": 1, "tokens": 0, "lines": []})

    @app.agent(records)
    async def chunker(stream: faust.Stream[bytes]) -> None:
        async for key, line in stream.items():
            session, tokens = key.decode(), tokens_of(line)
            held = table[session]
            if held["lines"] and held["tokens"] + tokens > MAX_TOKENS:
                lines = [it.encode() for it in held["lines"]]
                await chunks.send(key=key, value=chunk_of(key, held["t"], lines))
                held = {"t": held["t"] + 1, "tokens": 0, "lines": []}
            held["tokens"] += tokens
            held["lines"].append(line.decode())  # the table's values are JSON
            table[session] = held

    return app


def main() -> None:
    """Run until SIGTERM."""
    *arguments, partitions = sys.argv[1:]
    app = app_of(job_of(arguments), int(partitions))
    sys.argv = [sys.argv[0], "worker", "-l", "warn", "--without-web"]
    app.main()


if __name__ == "__main__":
    main()
