"""A chunk as one line of JSON, every record to the byte.

How a record is carried: spliced in raw as ``value`` when it is strict JSON, valid UTF-8, without
line breaks or outer white space, and not nested deeper than common parsers go; else as a JSON
string ``text`` when it is valid UTF-8; else as ``base64``. Never an exception, never a loss.

Back: ``wire_models.py``.
"""

import base64
from hashlib import sha256
from typing import Final

import msgspec

from processor.core.chunks import Chunk
from processor.core.policy import ChunkPolicy
from processor.core.records import Carried, Record
from processor.headers import headers_json
from processor.nesting import is_shallow
from processor.wire_models import SCHEMA_VERSION, WirePolicy

#: What the JSON around one record takes at most: its keys, and three numbers of up to 19 digits.
RECORD_BYTES: Final = 112


class _Naming(msgspec.Struct, gc=False):
    """The names of a session that transcripts and APIs put beside their content."""

    sessionId: str | None = None  # noqa: N815 - as Claude Code writes it
    session_id: str | None = None
    conversation_id: str | None = None


#: Finds the names in a JSON object, and skips, strictly, all else.
find_names: Final = msgspec.json.Decoder(_Naming).decode
_validate: Final = msgspec.json.Decoder(msgspec.Raw).decode
_text: Final = msgspec.json.Encoder().encode
_VALUE: Final = Carried.VALUE  # to look it up in its class takes 0.05 µs, for every record twice
_LOGGED_VALUE: Final = b'{"offset":%d,"timestamp_ms":%d,"token_count":%d,"value":'
_LOGGED_HEADERS: Final = b'{"offset":%d,"timestamp_ms":%d,"token_count":%d,%b"value":'
_WHITE: Final = b" \t"
# Numbers: looking for one in bytes is a memchr, looking for bytes takes five times as long.
_LF, _CR = b"\n\r"


def read_value(value: bytes) -> tuple[str, Carried, int]:
    """Return what has to be known of a record's bytes to chunk them: ``read_naming`` in part."""
    return read_naming(value)[:3]


def read_naming(value: bytes) -> tuple[str, Carried, int, str]:
    """Return what has to be known of a record's bytes; total on any.

    Returns:
        The text, for counting tokens (invalid UTF-8 is replaced in it); how a chunk carries the
        value; the bytes that it takes there at most, which depend on nothing but the value; and
        the session that a JSON object names in a field of its own, empty where it names none.
    """
    # One function, for half of the chunker's calls are to it.
    try:
        text = value.decode()
    except UnicodeDecodeError:
        in_base64 = 4 * ((len(value) + 2) // 3) + 2
        return value.decode("utf-8", "replace"), Carried.BASE64, RECORD_BYTES + in_base64, ""
    # msgspec does not judge outer white space, line breaks or depth.
    if (
        value
        and value[0] not in _WHITE
        and value[-1] not in _WHITE
        and _LF not in value
        and _CR not in value
    ):
        try:
            # To find the names on the way costs 0.15 µs, to look for them in the bytes 1.2.
            found = find_names(value)
            named = found.sessionId or found.session_id or found.conversation_id or ""
        except msgspec.ValidationError:
            is_json, named = _is_json(value), ""
        except (msgspec.DecodeError, RecursionError):
            is_json, named = False, ""
        else:
            is_json = True
        if is_json and is_shallow(value):
            return text, _VALUE, RECORD_BYTES + len(value), named
    return text, Carried.TEXT, RECORD_BYTES + len(_text(text)), ""


def _is_json(value: bytes) -> bool:
    """Tell whether ``value`` is strict JSON: no object, or one whose session is no text."""
    try:
        _validate(value)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def chunk_headers(chunk: Chunk) -> list[tuple[str, bytes]]:
    """Return the headers of a chunk's message; nothing random, so a second run gives the same."""
    return [
        ("content-type", b"application/json"),
        ("schema-version", b"%d" % SCHEMA_VERSION),
        ("ce_id", f"{chunk.session}/{chunk.t}".encode()),
    ]


class ChunkEncoder:
    """Chunks of one partition to bytes.

    Args:
        policy: Stands in each chunk, so that it can be computed again.
        token_counter: Name of the counter.
        topic: Where the records come from: a topic, or the name of a file.
        partition: Its partition.
    """

    def __init__(self, policy: ChunkPolicy, token_counter: str, topic: str, partition: int) -> None:
        self._counter = b'"token_counter":%b,"max_tokens":%d' % (
            _text(token_counter),
            policy.max_tokens,
        )
        self._policy = b'"policy":' + _text(WirePolicy.of(policy))
        self._max_bytes = policy.max_chunk_bytes
        self._source = b'"source":{"topic":%b,"partition":%d' % (_text(topic), partition)

    def encode(self, chunk: Chunk) -> bytes:
        """Return the chunk as one line of JSON, without a line break."""
        # Joined once: each copy of a chunk costs as much as looking for line breaks in it.
        parts = [self._head(chunk)]
        add = parts.append
        for record in chunk.records:
            _, value, token_count, offset, timestamp_ms, _, carried, headers = record
            if carried is _VALUE and offset is not None and timestamp_ms is not None:
                numbers = (offset, timestamp_ms, token_count)
                if headers:
                    add(_LOGGED_HEADERS % (*numbers, headers_json(headers)))
                else:
                    add(_LOGGED_VALUE % numbers)
                add(value)  # as it is: no copy before the chunk's
                add(b"},")
            else:
                add(_record(record))
        if chunk.records:
            parts[-1] = parts[-1][:-1]  # no comma after the last
        parts.append(self._tail(chunk))
        return b"".join(parts)

    def encode_omitted(self, chunk: Chunk) -> bytes:
        """Return the chunk of one record that no message can carry, without the record's bytes.

        The digest still covers them: such a chunk is checked against the log. Headers that would
        take it above ``max_chunk_bytes``, which every topic takes, stay in the log too.
        """
        (record,) = chunk.records
        head, tail = self._head(chunk), self._tail(chunk)
        about = b'"token_count":%d,"bytes":%d,"sha256":"%b","omitted":"too_large"}' % (
            record.token_count,
            len(record.value),
            sha256(record.value).hexdigest().encode(),
        )
        offset = b'{"offset":%b,' % _number(record.offset).encode()
        headers = headers_json(record.headers)
        if sum(map(len, (head, offset, headers, about, tail))) > self._max_bytes:
            headers = b""
        return b"".join((head, offset, headers, about, tail))

    def _head(self, chunk: Chunk) -> bytes:
        return b'{"schema_version":%d,"session":%b,"t":%d,"records":[' % (
            SCHEMA_VERSION,
            _text(chunk.session),
            chunk.t,
        )

    def _tail(self, chunk: Chunk) -> bytes:
        first, last = (chunk.records[0], chunk.records[-1]) if chunk.records else (None, None)
        return (
            b'],"token_count":%d,%b,"over_budget":%b,%b,"flush":"%b","final":%b,%b%b,'
            b'"first_offset":%b,"last_offset":%b},"previous_digest":"%b","digest":"%b"}'
        ) % (
            chunk.token_count,
            self._counter,
            _bool(chunk.over_budget),
            self._policy,
            chunk.flush.encode(),
            _bool(chunk.final),
            b'"clock":true,' if chunk.clock else b"",
            self._source,
            _number(first.offset if first else None).encode(),
            _number(last.offset if last else None).encode(),
            chunk.previous_digest.hex().encode(),
            chunk.digest.hex().encode(),
        )


def _record(record: Record) -> bytes:
    """Return the record's JSON and a comma."""
    if record.carried is _VALUE:
        body = record.value
    elif record.carried is Carried.TEXT:
        body = _text(record.value.decode())
    else:
        body = b'"%b"' % base64.b64encode(record.value)
    return b'{"offset":%b,"timestamp_ms":%b,"token_count":%d,%b"%b":%b},' % (
        _number(record.offset).encode(),
        _number(record.timestamp_ms).encode(),
        record.token_count,
        headers_json(record.headers),
        record.carried.encode(),
        body,
    )


def _number(number: int | None) -> str:
    return "null" if number is None else str(number)


def _bool(fact: bool) -> bytes:  # noqa: FBT001 - the fact itself is encoded
    return b"true" if fact else b"false"
