"""What reads the streams of a telemetry partition: one format for each, with what it remembers."""

import re
from dataclasses import replace
from typing import Final, NamedTuple

from processor.core.errors import NoSessionError, RecordError
from processor.formats import ANY_LINES, detect_format, format_named
from processor.formats.format import Format, FormatOptions, SessionRecord
from processor.protocol.streams import Streams

#: Detect the format of each stream: the first value that one recognises decides.
AUTO: Final = "auto"
_FILE: Final = ".jsonl"
#: Readers kept at a time; what they have to remember is not theirs.
_MAX_READERS: Final = 1024


class Made(NamedTuple):
    """What a value became.

    Attributes:
        records: In order.
        format: Name of the format that read it.
    """

    records: list[SessionRecord]
    format: str


class _Reader(NamedTuple):
    name: str
    format: Format


class StreamReaders:
    """The readers of one partition's streams.

    Args:
        streams: What is remembered of them.
        chosen: The name of all streams' format, or ``AUTO``.
        options: What a person chose; the session is each stream's own.
    """

    def __init__(self, streams: Streams, chosen: str, options: FormatOptions) -> None:
        self._streams = streams
        self._chosen = chosen
        self._options = options
        self._readers: dict[bytes | None, _Reader] = {}

    def read(self, name: bytes | None, value: bytes) -> Made:
        """Return what the next value of a stream becomes.

        Args:
            name: The stream's; ``None`` for messages without a key.
            value: Of the message.

        Raises:
            RecordError: It belongs to no session.
        """
        about = self._streams.of(name).about
        reader = self._reader(name, value)
        try:
            records = list(reader.format.read(value))
        except RecordError:
            if "format" not in about:
                # It was not of this format, or of none: the next value tells better.
                self._forget(name)
            raise
        about["format"] = reader.name
        sessions = [it.session for it in records if it.session is not None]
        # Who ends the stream means the session that it was in; without a key nobody can.
        if sessions and name is not None:
            about["session"] = sessions[-1]
        return Made(records, reader.name)

    def end(self, name: bytes | None) -> str:
        """Forget a stream and return the session that it was last in.

        Raises:
            NoSessionError: There is none.
        """
        session = self._streams.of(name).about.get("session")
        if session is None:
            message = "a null value ends the stream of its key, but that has had no record"
            raise NoSessionError(message)
        self._forget(name)
        return session

    def _reader(self, name: bytes | None, value: bytes) -> _Reader:
        there = self._readers.get(name)
        if there is not None and (self._chosen != AUTO or there.name != ANY_LINES):
            return there
        known, chosen = self._streams.of(name).about.get("format"), self._chosen
        if chosen == AUTO:
            chosen = known or ANY_LINES
            if chosen == ANY_LINES:
                chosen = detect_format([value])
        if there is not None and there.name == chosen:
            return there
        return self._new_reader(name, chosen, known)

    def _new_reader(self, name: bytes | None, chosen: str, known: str | None) -> _Reader:
        stream = self._streams.of(name)
        if known not in (None, chosen):
            # What another format remembers means nothing to this one.
            stream.memory.clear()
        if len(self._readers) >= _MAX_READERS:
            self._readers.clear()
        options = replace(self._options, session=_session(name))
        reader = _Reader(chosen, format_named(chosen, options, stream.memory))
        self._readers[name] = reader
        return reader

    def _forget(self, name: bytes | None) -> None:
        self._streams.forget(name)
        self._readers.pop(name, None)


def _session(name: bytes | None) -> str | None:
    """Return the session of what names none itself: the key's, of a file's its name's."""
    try:
        text = None if name is None else name.decode()
    except UnicodeDecodeError:
        return None
    if text is not None and text.endswith(_FILE):
        return re.split(r"[/\\]", text)[-1].removesuffix(_FILE)
    return text
