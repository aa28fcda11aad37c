"""All records of a stream in one session, whatever they name."""

from collections.abc import Sequence

from processor.formats.format import Format, SessionRecord


class OneSession:
    """Reads as another format does, and gives every record the session that a person chose."""

    def __init__(self, session: str, inner: Format) -> None:
        self._session = session
        self._inner = inner

    def read(self, value: bytes) -> Sequence[SessionRecord]:
        """Return the records of the other format, in the one session."""
        return [it._replace(session=self._session) for it in self._inner.read(value)]
