"""Valid bytes of each kind that is read from outside, as the project itself writes them."""

from pathlib import Path
from tempfile import TemporaryDirectory

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from processor.cli.verify_position import Position
from processor.core.errors import RecordError
from processor.core.policy import ChunkPolicy
from processor.core.records import Record
from processor.core.session_state import SessionState
from processor.formats.format import FormatOptions
from processor.proof.report import Report
from processor.protocol.changelog import Counts, PartitionEntry, encode_session
from processor.protocol.dead_letter import dead_letter
from processor.protocol.redriven import OffsetRanges, Redriven
from processor.protocol.stream_readers import StreamReaders
from processor.protocol.streams import Streams
from processor.sources.finding import Found, Identity, Stamp
from processor.sources.followed_file import FollowedFile
from processor.wire import ChunkEncoder, read_naming
from tests.builders import chunk_all
from tests.history import Message
from tests.unit.formats.samples import DATA, lines_of
from tests.unit.formats.telemetry import as_json, as_protobuf, call, log, logs_of, span, spans_of


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
LETTERED = Message(42, None, b"v", 1000, (("own", b"1"),))
LETTER = dead_letter(LETTERED, "records", 3, RecordError("no session"))
TRANSCRIPT_LINES = sorted({it for path in DATA.glob("*/*.jsonl") for it in lines_of(path)})
TELEMETRY = [
    spans_of(call("ab", "A"), span({"session.id": "s"}), resource={"service.name": "x"}),
    logs_of(log({"session.id": "s", "n": [1, 2.5, {"a": b"\xff"}]}, body={"stringValue": "b"})),
]
EXPORTS = [encode(it) for it in TELEMETRY for encode in (as_json, as_protobuf)]


def batch(codec=0, headers=HEADERS):
    """One batch of records as a broker gives it."""
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for offset, value in enumerate(VALUES):
        builder.append(offset, 1000 + offset, b"s1", value, list(headers[: offset % 4]))
    return bytes(builder.build())


BATCHES = [batch(codec) for codec in range(5)] + [batch() * 2]


def stream_changes():
    streams = Streams({}, "telemetry[0]", "start over")
    for export in EXPORTS:
        StreamReaders(streams, "otel", FormatOptions()).read(b"stream", export)
    return streams.take_changes()


STREAM_ENTRIES = stream_changes()
MEMORY_KEY = next(it for it in STREAM_ENTRIES if b"otel." in it)
REDRIVEN = Redriven(OffsetRanges([(1, 3), (7, 9)]), (8, 1000)).encode()
FILE = FollowedFile(Found("a.jsonl", Identity(1, 2), Stamp(0, 0)), b"k")
TOKEN = b'{"access_token":"abc.def-1=","expires_in":300,"token_type":"bearer"}'
TOML = b"""app_id = "a"
max_tokens = 5_000
idle_s = 1.5
create_topics = false
log_level = "info"
"""


def kept_position():
    with TemporaryDirectory() as folder:
        path = Path(folder, "position")
        Position(path, {"topic": "a"}).keep(0, Report(), b"12345678")
        return path.read_bytes()
