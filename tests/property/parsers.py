"""Everything that parses bytes from outside: what it reads, and the one error that it may raise."""

from collections.abc import Callable
from typing import NamedTuple

from aiokafka.errors import KafkaError

from processor.cli.health import problems_in
from processor.cli.version import commit_in
from processor.core.errors import (
    ChangelogError,
    ConfigError,
    ProcessorError,
    RecordError,
    StateError,
)
from processor.formats import FORMATS
from processor.kafka.letters import numbered
from processor.kafka.tokens import TokenError
from processor.nesting import is_shallow
from processor.protocol.changelog import (
    PARTITION_KEY,
    decode_partition,
    decode_sessions,
    encode_partition,
)
from processor.protocol.dead_letter import session_of
from processor.tracing import span_context
from processor.wire import read_naming
from processor.wire_models import decode_chunk
from tests.property.readings import (
    environment,
    followed,
    format_reader,
    letter_of,
    position,
    records_of,
    redriven,
    refusal,
    replayed_letter,
    restored_session,
    seen,
    settings_file,
    stream_key,
    streamed,
    token_file,
    token_of,
)
from tests.property.samples import (
    BATCHES,
    CHUNKS,
    ENTRIES,
    EXPORTS,
    FILE,
    MEMORY_KEY,
    PARTITION,
    REDRIVEN,
    STREAM_ENTRIES,
    TOKEN,
    TOML,
    TRANSCRIPT_LINES,
    VALUES,
    kept_position,
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


FORMAT_MODULES = tuple(
    f"processor.formats.{it}" for it in ("otlp_protobuf", "strict_json", "json_line")
)


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
        [kept_position()],
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
