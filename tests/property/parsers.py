"""Everything that parses bytes from outside: what it reads, and the one error that it may raise."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import NamedTuple

from aiokafka.errors import KafkaError
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from pydantic import SecretStr

from processor.cli.health import problems_in
from processor.cli.verify_position import Position
from processor.cli.version import commit_in
from processor.core.errors import (
    ChangelogError,
    ConfigError,
    ProcessorError,
    RecordError,
    StateError,
)
from processor.core.policy import ChunkPolicy
from processor.core.records import Record
from processor.core.session_state import SessionState
from processor.core.sessions import PartitionSessions
from processor.formats import FORMATS, detect_format, format_named
from processor.formats.format import FormatOptions
from processor.kafka.letters import numbered
from processor.kafka.record_reader import TotalRecords
from processor.kafka.tokens import EndpointClient, FileTokens, TokenError, _read_answer, _refusal
from processor.nesting import is_shallow
from processor.proof.dead_letters import DeadLetterProof
from processor.proof.message import WHOLE, Topics
from processor.proof.report import Report
from processor.proof.seen import Seen
from processor.protocol.changelog import (
    PARTITION_KEY,
    Counts,
    PartitionEntry,
    decode_partition,
    decode_sessions,
    encode_partition,
    encode_session,
)
from processor.protocol.dead_letter import dead_letter, session_of
from processor.protocol.letters import Letter
from processor.protocol.port import Survey
from processor.protocol.rebuild import Rebuild
from processor.protocol.redriven import OffsetRanges, Redriven, decode_redriven
from processor.protocol.stream_readers import StreamReaders
from processor.protocol.streams import Streams
from processor.settings_loading import load_settings
from processor.sources.finding import Found, Identity, Stamp
from processor.sources.followed_file import FollowedFile
from processor.tracing import span_context
from processor.wire import ChunkEncoder, read_naming
from processor.wire_models import decode_chunk
from tests.builders import chunk_all
from tests.unit.formats.samples import DATA, lines_of
from tests.unit.formats.telemetry import (
    as_json,
    as_protobuf,
    call,
    log,
    logs_of,
    span,
    spans_of,
)


class Parser(NamedTuple):
    """One way in for bytes from outside.

    Attributes:
        read: Takes them; whatever it returns is read to the end.
        samples: Valid ones.
        errors: What it may raise; nothing where it is total.
        modules: Where it decodes.
    """

    read: Callable
    samples: list[bytes]
    errors: tuple = ()
    modules: tuple = ()


def as_record(value, offset, headers=()):
    """A record as a worker makes it of a value: how a chunk carries it is judged."""
    _, carried, size_bytes, _ = read_naming(value)
    return Record("s1", value, 1, offset, 1000 + offset, size_bytes, carried, headers)


VALUES = [
    b'{"type":"user","sessionId":"s1","message":{"content":[{"text":"a \\u00fc b"}]}}',
    b'{"text":"x \\ud83d y","n":[1,2.5e3,true,null]}',
    b"plain text, \xc3\xbc, with a line\nbreak",
    b"\xff\x00 no text",
    b" 1 ",
    b"",
]
HEADERS = (("event-time", b"then"), ("odd", b"\xff"), ("none", None))
ENCODER = ChunkEncoder(ChunkPolicy(), "words", "records", 3)
RECORDS = [as_record(it, offset, HEADERS[: offset % 4]) for offset, it in enumerate(VALUES)]
CHUNKS = [ENCODER.encode(it) for it in chunk_all(RECORDS, ChunkPolicy(max_chunk_records=4))] + [
    ENCODER.encode_omitted(it) for it in chunk_all(RECORDS[:1], ChunkPolicy())
]

STATES = [
    SessionState("s1", 3, bytes(range(32)), 41, ended=True),
    SessionState("s2", 0, bytes(32), 9, records=tuple(RECORDS), opened_at_ms=7, last_at_ms=9),
]
ENTRIES = {it.session.encode(): encode_session(it) for it in STATES}
PARTITION = PartitionEntry(
    low=3,
    log_time_ms=1000,
    seen=9,
    partition_count=4,
    rule={"max_tokens": 10, "idle_s": 0.5, "carry_headers": ["a"]},
    fingerprint=(8, 1008),
    counts=Counts(9, 5, 1, 1, 0),
    topic="records",
)

LETTERED = SimpleNamespace(
    offset=42, timestamp=1000, timestamp_type=1, key=None, value=b"v", headers=[("own", b"1")]
)
LETTER = dead_letter(LETTERED, "records", 3, RecordError("no session"))
LETTER_HEADERS = [name for name, _ in LETTER.headers]

TRANSCRIPT_LINES = sorted({it for path in DATA.glob("*/*.jsonl") for it in lines_of(path)})
TELEMETRY = [
    spans_of(call("ab", "A"), span({"session.id": "s"}), resource={"service.name": "x"}),
    logs_of(log({"session.id": "s", "n": [1, 2.5, {"a": b"\xff"}]}, body={"stringValue": "b"})),
]
FORMAT_MODULES = tuple(
    f"processor.formats.{it}" for it in ("otlp_protobuf", "strict_json", "json_line")
)
EXPORTS = [encode(it) for it in TELEMETRY for encode in (as_json, as_protobuf)]


def batch(codec=0, headers=HEADERS):
    """One batch of records as a broker gives it."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for offset, value in enumerate(VALUES):
        builder.append(offset, 1000 + offset, b"s1", value, list(headers[: offset % 4]))
    return bytes(builder.build())


BATCHES = [batch(codec) for codec in range(5)] + [batch() * 2]


def records_of(data):
    """Read an answer of a broker as the worker's own consumer does."""
    batches, found = TotalRecords(data), []
    while batches.has_next():
        one = batches.next_batch()
        found += [
            (it.offset, it.timestamp, it.timestamp_type, it.key, it.value, list(it.headers))
            for it in one
        ]
    return found


def restored_session(value):
    """Decode a session's entry and take it in, open records and all."""
    states = list(decode_sessions({b"s": value}, "records[0]"))
    return [PartitionSessions(ChunkPolicy(), states).state(it.session) for it in states]


def seen(value):
    """Read a chunk as a proof does."""
    message = SimpleNamespace(value=value)
    found = Seen(message)
    return found.values, [found.omitted() for it in found.values if it is None]


def letter_of(value):
    """Read a dead letter each of whose own headers in turn says ``value``, or is null."""
    found = []
    for name in [it for it, _ in LETTER.headers][1:]:
        headers = [(it, (value or None) if it == name else own) for it, own in LETTER.headers]
        letter = SimpleNamespace(**vars(LETTERED) | {"headers": headers})
        proof = DeadLetterProof(Topics("records", "chunks", "letters"), 3, WHOLE, Report())
        proof.take([letter])
        proof.finish(100, 100)
        config = SimpleNamespace(topic="records", rule={}, start_at_end=False)
        rebuild = Rebuild(config, 3, Survey(4, 0, 1 << 62, None), 0)
        rebuild.take_letter(letter)
        told = Letter("letters", 0, letter)
        found.append((rebuild.seen, told.reason, told.origin, told.record_headers()))
    return found


def replayed_letter(value):
    """Read how often a dead letter says that it was sent again."""
    headers = [*LETTER.headers, ("processor-replay-count", value)]
    letter = Letter("letters", 0, SimpleNamespace(**vars(LETTERED) | {"headers": headers}))
    assert letter.replay_count >= 0
    return letter.record_headers()


def redriven(value):
    """Decode a ledger's entry and ask it about letters."""
    return [
        (it.is_of(0, 50, 7), Letter("letters", 0, LETTERED) in it, decode_again(it))
        for it in numbered({b"3": value}, "ledger").values()
    ]


def decode_again(it):
    assert it.last is None or decode_redriven(it.encode(), "ledger").last == it.last


def streamed(value):
    """Take in what a format remembered of a stream, and read on."""
    streams = Streams(STREAM_ENTRIES | {MEMORY_KEY: value}, "telemetry[0]", "start over")
    readers = StreamReaders(streams, "otel", FormatOptions())
    return readers.read(b"stream", EXPORTS[0])


def stream_key(key):
    """Take in an item of a stream under a damaged key."""
    streams = Streams({key: b"\x01text"}, "telemetry[0]", "start over")
    return dict(streams.of(b"stream").about)


def _changes():
    streams = Streams({}, "telemetry[0]", "start over")
    for export in EXPORTS:
        StreamReaders(streams, "otel", FormatOptions()).read(b"stream", export)
    return streams.take_changes()


STREAM_ENTRIES = _changes()
MEMORY_KEY = next(it for it in STREAM_ENTRIES if b"otel." in it)

REDRIVEN = Redriven(OffsetRanges([(1, 3), (7, 9)]), (8, 1000)).encode()
FILE = FollowedFile(Found("a.jsonl", Identity(1, 2), Stamp(0, 0)), b"k")


def followed(entry):
    """Take in how far a file was read, and write it down again."""
    file = FollowedFile.restored(b"k", entry)
    again = FollowedFile.restored(b"k", file.entry())
    assert again.entry() == file.entry()
    return file.position + file.line_count


CLIENT = EndpointClient("https://x/token", "me", SecretStr("s"), None)
TOKEN = b'{"access_token":"abc.def-1=","expires_in":300,"token_type":"bearer"}'


def token_of(body):
    """Read the answer of a token endpoint; a life is a number that a clock can be set by."""
    token, life_s = _read_answer(CLIENT, body)
    assert token.isascii()
    assert 0 <= life_s < float("inf")
    return token


def token_file(content):
    with TemporaryDirectory() as folder:
        path = Path(folder, "token")
        path.write_bytes(content)
        return asyncio.run(FileTokens(path).token())


def refusal(body):
    return str(_refusal(CLIENT, 400, body)), str(_refusal(CLIENT, 503, body))


TOML = b"""app_id = "a"
max_tokens = 5_000
idle_s = 1.5
create_topics = false
log_level = "info"
"""


def settings_file(content):
    with TemporaryDirectory() as folder:
        path = Path(folder, "processor.toml")
        path.write_bytes(content)
        return load_settings(environ={}, path=path)


def position(content):
    """Go on with a verification from its file."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "position")
        path.write_bytes(content)
        return Position(path, {"topic": "a"}).of(0) or ()


def _position():
    with TemporaryDirectory() as folder:
        path = Path(folder, "position")
        Position(path, {"topic": "a"}).keep(0, Report(), b"12345678")
        return path.read_bytes()


def environment(value):
    """Read settings of which each variable in turn has ``value``, as the system gives it."""
    found = []
    for name in ENVIRONMENT:
        # A variable is any bytes but NUL.
        text = value.replace(b"\0", b"").decode("utf-8", "surrogateescape")
        try:
            found.append(load_settings(environ={name: text}))
        except ConfigError as error:
            str(error).encode("utf-8", "backslashreplace")
    return found


ENVIRONMENT = (
    "PROCESSOR_APP_ID",
    "PROCESSOR_MAX_TOKENS",
    "PROCESSOR_IDLE_S",
    "PROCESSOR_CREATE_TOPICS",
    "PROCESSOR_LOG_LEVEL",
    "PROCESSOR_CARRY_HEADERS",
    "KAFKA_SSL_CA_LOCATION",
    "KAFKA_SASL_PASSWORD",
    "KAFKA_SASL_PASSWORD_FILE",
    "KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL",
)


def format_reader(name):
    def read(value):
        detect_format([value])
        options = FormatOptions("s", ("sessionId.x",), (("h", "message.content"),))
        return format_named(name, options, {}).read(value)

    return read


PARSERS = {
    "value": Parser(read_naming, VALUES + TRANSCRIPT_LINES, (), ("processor.wire",)),
    "depth": Parser(is_shallow, VALUES),
    "key": Parser(session_of, [b"s1", "\u00fc".encode(), b""], RecordError),
    "batch": Parser(records_of, BATCHES, KafkaError),
    "traceparent": Parser(
        span_context, [b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]
    ),
    "chunk": Parser(decode_chunk, CHUNKS, StateError, ("processor.wire_models",)),
    "proof's chunk": Parser(seen, CHUNKS, StateError, ("processor.proof.seen",)),
    "session entry": Parser(
        restored_session,
        list(ENTRIES.values()),
        ChangelogError,
        ("processor.protocol.changelog", "processor.core.dormant"),
    ),
    "session key": Parser(
        lambda key: list(decode_sessions({key: ENTRIES[b"s1"]}, "records[0]")),
        [b"s1"],
        ChangelogError,
    ),
    "partition entry": Parser(
        lambda value: decode_partition({PARTITION_KEY: value}, "records[0]"),
        [encode_partition(PARTITION)],
        ChangelogError,
    ),
    "stream entry": Parser(
        streamed,
        [STREAM_ENTRIES[MEMORY_KEY]],
        StateError,
        ("processor.protocol.streams",),
    ),
    "stream key": Parser(stream_key, list(STREAM_ENTRIES), ChangelogError),
    "dead letter": Parser(letter_of, [b"records", b"3", b"42"], StateError),
    "replayed letter": Parser(replayed_letter, [b"1"]),
    "ledger entry": Parser(redriven, [REDRIVEN], StateError, ("processor.protocol.redriven",)),
    "ledger key": Parser(
        lambda key: numbered({key: REDRIVEN}, "ledger"), [b"0", b"12"], StateError
    ),
    "file entry": Parser(
        followed, [FILE.entry()], ChangelogError, ("processor.sources.followed_file",)
    ),
    "token": Parser(token_of, [TOKEN], ProcessorError, ("processor.kafka.tokens",)),
    "token refusal": Parser(refusal, [b'{"error":"invalid_client"}']),
    "token file": Parser(token_file, [b"abc.def-1=\n"], TokenError),
    "settings file": Parser(settings_file, [TOML], ConfigError, ("processor.settings_loading",)),
    "environment": Parser(environment, [b"a", b"5000", b"true", b"info", b"/etc/x"]),
    "verify's position": Parser(
        position,
        [_position()],
        ConfigError,
        ("processor.cli.verify_position",),
    ),
    "health": Parser(
        problems_in,
        [b'{"problems":[{"what":"a","remedy":"b"}]}'],
        (ValueError, RecursionError),
        ("processor.cli.health",),
    ),
    "origin": Parser(
        commit_in,
        [b'{"url":"https://a/b.git","vcs_info":{"vcs":"git","commit_id":"0123abc"}}'],
        modules=("processor.cli.version",),
    ),
    **{
        f"format {name}": Parser(
            format_reader(name),
            EXPORTS if name == "otel" else TRANSCRIPT_LINES,
            RecordError,
            FORMAT_MODULES,
        )
        for name in FORMATS
    },
}
