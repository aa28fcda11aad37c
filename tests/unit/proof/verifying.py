"""A history whose proof is clean, and ways to spoil it."""

import asyncio
import json

from processor.proof.message import WHOLE, Topics
from processor.proof.report import Report
from processor.proof.verify import PartitionProof, prove_partition
from tests.history import chunks_of, letters_of, log_of

TOPICS = Topics("records", "chunks", "records.dead-letter")


LOG = log_of(
    "a:one",
    "b:" + "x" * 15,
    "a:" + "y" * 30,
    "b:" + "x" * 20,
    "a:" + "z" * 100,
    "a:four",
    "b.",
    "a:five",
    "b:" + "w" * 36,
    "b:" + "w" * 36,
    "a:" + "u" * 30,
    "b.",
    "b.",
    "a:rest",
)


CHUNKS = chunks_of(LOG)


async def batches(messages, size):
    for start in range(0, len(messages), size):
        yield messages[start : start + size]


def verify(  # noqa: PLR0913 - all that a test can spoil
    log=LOG,
    chunks=CHUNKS,
    letters=None,
    *,
    starts=WHOLE,
    processed=0,
    size=1,
    recompute=False,
    only=None,
):
    report = Report()
    proof = PartitionProof(TOPICS, 0, report, starts, processed)
    if recompute:
        proof.recompute()
    if only is not None:
        proof.keep_to(only)
    letters = letters_of(log) if letters is None else letters
    streams = [batches(messages, size) for messages in (log, chunks, letters)]
    asyncio.run(prove_partition(proof, *streams))
    assert report.unaccounted_count == 0
    return report


def faults(*args, **kwargs):
    report = verify(*args, **kwargs)
    assert {kind for kind in report.faults if report.faults[kind]} == report.first.keys()
    return {kind.name: count for kind, count in report.faults.items() if count}


def edited(at, old=None, new=None, /, **fields):
    """The chunks with one changed: a piece of its JSON replaced, or fields of its message."""
    message = CHUNKS[at]
    if old is not None:
        assert old in message.value
        message = message._replace(value=message.value.replace(old, new, 1))
    return [*CHUNKS[:at], message._replace(**fields), *CHUNKS[at + 1 :]]


def resealed(at, **fields):
    """The chunks with fields of one changed."""
    chunk = json.loads(CHUNKS[at].value)
    value = json.dumps(chunk | fields, separators=(",", ":")).encode()
    return [*CHUNKS[:at], CHUNKS[at]._replace(value=value), *CHUNKS[at + 1 :]]


def at(session, t):
    return next(i for i, it in enumerate(CHUNKS) if it.headers[2][1] == b"%b/%d" % (session, t))


def relabelled(chunks, policy):
    """Chunks that claim another policy than they were cut by."""
    (sample,) = chunks_of(log_of("a.", "a:1"), policy)
    claimed = {name: json.loads(sample.value)[name] for name in ("max_tokens", "policy")}
    return [
        it._replace(
            value=json.dumps(json.loads(it.value) | claimed, separators=(",", ":")).encode()
        )
        for it in chunks
    ]
