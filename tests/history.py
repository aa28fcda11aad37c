"""A log, and what a right worker makes of it: the core and the wire, without the protocol."""

from typing import NamedTuple

from processor.core.policy import ChunkPolicy, OrIdle
from processor.core.records import Record
from processor.core.sessions import PartitionSessions
from processor.counters import CharsOverFour, count_tokens
from processor.headers import chosen_headers, headers_json
from processor.proof.dead_letters import is_session
from processor.wire import ChunkEncoder, chunk_headers, read_value

LOG_APPEND_TIME = 1
QUARTERS = CharsOverFour()
POLICY = ChunkPolicy(max_tokens=10, flush=OrIdle(30), max_age_s=100, max_chunk_records=4)


class Message(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int = 0
    headers: tuple = ()
    timestamp_type: int = LOG_APPEND_TIME


def log_of(*items, step_ms=1000, every=1):
    """Messages a second apart: ``"a:text"`` is a record of session a, ``"a."`` its end."""
    messages = []
    for number, item in enumerate(items):
        if isinstance(item, Message):
            messages.append(item)
            continue
        at_ms = 1_000_000 + number * step_ms
        session, is_record, text = item.partition(":")
        value = text.encode() if is_record else None
        key = session.removesuffix(".").encode()
        messages.append(Message(number * every, key, value, at_ms))
    return messages


def log_messages(log):
    """The messages of a log that the strategy ``logs`` draws."""
    return [
        Message(it.offset, it.session.encode(), None if is_end else it.value, it.timestamp_ms)
        for it, is_end in log
    ]


def repeated_of(log, size):
    """Offsets of the records that repeat one of their session by its id, naively."""
    known = [
        (it.offset, it.key, dict(it.headers).get("record-id"))
        for it in log
        if is_session(it.key) and it.value is not None
    ]
    return {
        offset
        for offset, key, name in known
        if name
        and any(
            (key, name) == (other_key, other_name) and offset - size <= earlier < offset
            for earlier, other_key, other_name in known
        )
    }


def chunks_of(  # noqa: PLR0913 - all that a history may differ in
    log, policy=POLICY, *, counter=QUARTERS, source=("records", 0), clock_after=None, omit=()
):
    """The chunk messages of a log; ``clock_after`` closes by the clock what is due behind it."""
    sessions, closed = PartitionSessions(policy), []
    repeated = repeated_of(log, policy.deduplicate_records) if policy.deduplicate_records else ()
    for message in log:
        if not is_session(message.key) or message.offset in repeated:
            sessions.pass_by(message.timestamp)
            continue
        session = message.key.decode()
        if message.value is None:
            closed += sessions.end(session, message.offset, message.timestamp)
            continue
        text, carried, size = read_value(message.value)
        (tokens,) = count_tokens(counter, [text], policy.max_tokens)
        headers = chosen_headers(message.headers, policy.carry_headers)
        closed += sessions.push(
            Record(
                session,
                message.value,
                tokens,
                message.offset,
                message.timestamp,
                size + len(headers_json(headers)),
                carried,
                headers,
            )
        )
        if message.offset == clock_after:
            closed += sessions.close_due(message.timestamp + 10_000_000)
    encoder = ChunkEncoder(policy, counter.name, *source)
    return [
        Message(
            offset,
            chunk.session.encode(),
            encoder.encode_omitted(chunk)
            if chunk.records and chunk.records[0].offset in omit
            else encoder.encode(chunk),
            0,
            tuple(chunk_headers(chunk)),
        )
        for offset, chunk in enumerate(closed)
    ]


def letters_of(log, topic="records", partition=0):
    """The dead letters of a log."""
    return [
        Message(
            offset,
            message.key,
            message.value,
            message.timestamp,
            (
                *message.headers,
                ("__connect.errors.topic", topic.encode()),
                ("__connect.errors.partition", b"%d" % partition),
                ("__connect.errors.offset", b"%d" % message.offset),
                ("processor-reason", b"key-not-utf8" if message.key else b"no-key"),
            ),
        )
        for offset, message in enumerate(message for message in log if not is_session(message.key))
    ]
