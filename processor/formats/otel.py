"""OTLP logs and spans, as the OpenTelemetry Collector's Kafka exporter sends them.

One value is one export, which holds entries of several sessions. An entry that tells of a call of a
model gives the messages of that call which are new; any other entry is a record itself. Order is
order of arrival: spans end in any order, and times would not tell a better one.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from processor.core.errors import ConfigError, FormatError, NoSessionError
from processor.core.records import RECORD_ID
from processor.formats.fields import (
    EVENT_TIME,
    chosen_headers,
    session_in,
    stream_session,
)
from processor.formats.format import FormatOptions, Headers, Memory, SessionRecord
from processor.formats.genai import Call, call_of, digest_of, is_single_message
from processor.formats.histories import Histories
from processor.formats.otlp import Entry, FromProtobuf, Json, read_entries
from processor.formats.strict_json import canonical

#: Attributes that name a session: of GenAI's conventions, and of the general ones (Claude Code).
SESSION_ATTRIBUTES: Final = ("gen_ai.conversation.id", "session.id")
_NAMELESS: Final = (
    "no entry has an attribute that names its session; add one at the source, or say which it is"
)


class _Item(NamedTuple):
    """An entry, its session if it has one, and the call that it tells of, if any."""

    entry: Entry
    session: str | None
    call: Call | None

    def group(self) -> object:
        """Return what the parts of one call share, where each is a log record by itself."""
        if self.call is None or not is_single_message(self.entry):
            return id(self.entry)
        data = self.entry.data
        return self.session, str(data.get("traceId")), str(data.get("spanId"))


class Otel:
    """Reads exports of logs and spans.

    Args:
        from_protobuf: Reads those in protobuf.
        options: What a person chose; their attributes come before the conventions'.
        memory: Holds the histories of the sessions that were active last.
    """

    def __init__(self, from_protobuf: FromProtobuf, options: FormatOptions, memory: Memory) -> None:
        self._from_protobuf = from_protobuf
        self._options = options
        self._names = (*options.session_fields, *SESSION_ATTRIBUTES)
        self._histories = Histories(memory)

    def read(self, value: bytes) -> Sequence[SessionRecord]:
        """Return the records of one export; messages that were read before don't come again.

        An entry without a session beside others that have one becomes a record without one: an
        export of its own, in OTLP's JSON, which can be read again when its session is known.

        Raises:
            FormatError: It is no export of logs or spans.
            NoSessionError: None of its entries has a session.
        """
        try:
            records = list(self._records(read_entries(value, self._from_protobuf)))
        except RecursionError as error:
            message = "OTLP, but nested too deep to be read"
            raise FormatError(message) from error
        else:
            self._histories.keep()
            return records
        finally:
            self._histories.drop()

    def _records(self, entries: Sequence[Entry]) -> Iterator[SessionRecord]:
        items = [self._item(it) for it in entries]
        if items and all(it.session is None for it in items):
            raise NoSessionError(_NAMELESS)
        for _, group in groupby(items, key=_Item.group):
            (entry, session, call), *more = group
            if session is None:
                yield SessionRecord(None, canonical(entry.export), self._headers(entry))
            elif call is None:
                yield SessionRecord(session, canonical(entry.plain()), self._headers(entry))
            else:
                told = [(entry, call), *((it.entry, it.call) for it in more if it.call)]
                yield from self._new_messages(session, told)

    def _item(self, entry: Entry) -> _Item:
        session = session_in(place.get(name) for place in entry.places for name in self._names)
        if session is None and self._options.session:
            session = stream_session(self._options, _NAMELESS)
        return _Item(entry, session, None if session is None else call_of(entry))

    def _new_messages(
        self, session: str, told: Sequence[tuple[Entry, Call]]
    ) -> Iterator[SessionRecord]:
        """Yield what is new in one call, told by one entry or by several."""
        messages = [(entry, it) for entry, call in told for it in call.messages]
        digests = [digest_of(it) for _, it in messages]
        is_around_others = any(it.is_around_others for _, it in told)
        is_known = is_around_others and self._histories.knows(session, digests)
        ids = {} if is_known else self._histories.new_ids(session, digests)
        for entry, call in told:
            if call.instructions is not None:
                before = next(iter(ids.values()), "")
                digest = digest_of(call.instructions)
                new = self._histories.new_instructions_id(session, digest, before)
                if new is not None:
                    yield self._message(session, entry, call.instructions, new)
        for index, record_id in ids.items():
            yield self._message(session, *messages[index], record_id)

    def _message(self, session: str, entry: Entry, message: Json, record_id: str) -> SessionRecord:
        headers = (*self._headers(entry), (RECORD_ID, record_id.encode()))
        return SessionRecord(session, canonical(message), headers)

    def _headers(self, entry: Entry) -> Headers:
        time = entry.time()
        made = () if time is None else ((EVENT_TIME, time.encode()),)
        return (*made, *chosen_headers(self._options, entry.attribute))


def otel(options: FormatOptions, memory: Memory) -> Otel:
    """Make a reader of exports.

    Raises:
        ConfigError: The package that reads protobuf is not installed.
    """
    return Otel(_from_protobuf(), options, memory)


def is_otel(value: bytes) -> bool:
    """Tell whether a value is an export with entries; without the package none in protobuf is."""
    if not value.startswith((b"\n", b"{")):
        return False
    try:
        return bool(read_entries(value, _from_protobuf_if_asked))
    except (FormatError, RecursionError, ConfigError):
        return False


def _from_protobuf_if_asked(value: bytes) -> Json:
    return _from_protobuf()(value)


def _from_protobuf() -> FromProtobuf:
    try:
        # Here, since the package is an extra, and takes 50 ms to import.
        from processor.formats.otlp_protobuf import as_json  # noqa: PLC0415
    except ImportError as error:
        message = "format 'otel' needs a package: pip install 'poimen-processor[otel]'"
        raise ConfigError(message) from error
    return as_json
