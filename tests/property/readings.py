"""The project's readers of bytes from outside, each read to the end of what it returns."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

from pydantic import SecretStr

from processor.cli.verify_position import Position
from processor.core.errors import ConfigError
from processor.core.policy import ChunkPolicy
from processor.core.sessions import PartitionSessions
from processor.formats import detect_format, format_named
from processor.formats.format import FormatOptions
from processor.kafka.letters import numbered
from processor.kafka.record_reader import TotalRecords
from processor.kafka.tokens import EndpointClient, FileTokens, _read_answer, _refusal
from processor.proof.dead_letters import DeadLetterProof
from processor.proof.message import WHOLE, Topics
from processor.proof.report import Report
from processor.proof.seen import Seen
from processor.protocol.changelog import decode_sessions
from processor.protocol.letters import Letter
from processor.protocol.port import Survey
from processor.protocol.rebuild import Rebuild
from processor.protocol.redriven import decode_redriven
from processor.protocol.stream_readers import StreamReaders
from processor.protocol.streams import Streams
from processor.settings_loading import load_settings
from processor.sources.followed_file import FollowedFile
from tests.property.samples import EXPORTS, LETTER, LETTERED, MEMORY_KEY, STREAM_ENTRIES


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
        letter = LETTERED._replace(headers=headers)
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
    letter = Letter("letters", 0, LETTERED._replace(headers=headers))
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


def followed(entry):
    """Take in how far a file was read, and write it down again."""
    file = FollowedFile.restored(b"k", entry)
    again = FollowedFile.restored(b"k", file.entry())
    assert again.entry() == file.entry()
    return file.position + file.line_count


CLIENT = EndpointClient("https://x/token", "me", SecretStr("s"), None)


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
