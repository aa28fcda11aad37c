"""Every record without a session is in the dead-letter topic, exactly once."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from processor.headers import number_in
from processor.proof.message import Message, Starts, Topics
from processor.proof.report import Fault, FaultKind, Report

_TOPIC: Final = "__connect.errors.topic"
_PARTITION: Final = "__connect.errors.partition"
_OFFSET: Final = "__connect.errors.offset"
_REASON: Final = "processor-reason"


def is_session(key: bytes | None) -> bool:
    """Tell whether a key names a session: not empty, and UTF-8."""
    if not key:
        return False
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


class DeadLetterProof:
    """Matches one partition's records without a session with its dead letters, both in order.

    Args:
        topics: Names of the topics.
        partition: Number of the partition, the same in all.
        starts: Where each of its logs starts.
        report: Where faults go.
    """

    def __init__(self, topics: Topics, partition: int, starts: Starts, report: Report) -> None:
        self._topic = topics.dead_letters
        self._source = topics.records
        self._partition = partition
        self._starts = starts
        self._report = report
        # Retention may have deleted the dead letters before the first one that is left.
        self._is_deleted_before = starts.dead_letters > 0
        self._due: deque[Message] = deque()
        self._come: deque[Message] = deque()

    @property
    def is_waiting(self) -> bool:
        """Whether a record waits for its dead letter to be read."""
        return bool(self._due)

    def expect(self, record: Message) -> None:
        """Take a record without a session."""
        self._due.append(record)

    def take(self, letters: Iterable[Message]) -> None:
        """Take dead letters; those of another topic are another app's."""
        source = self._source.encode()
        self._come += [it for it in letters if dict(it.headers).get(_TOPIC, source) == source]
        self._match()

    def finish(self, end: int, processed: int) -> None:
        """Judge what is left over once both topics are read.

        Args:
            end: Offset up to which the records topic was read.
            processed: Offset below which a dead letter must be out.
        """
        self._match()
        for record in self._due:
            if record.offset < processed:
                self._blame_missing(record)
        for letter in self._come:
            offset = _offset(letter)
            if offset is None or offset < end:
                self._blame_needless(letter, offset)

    def _match(self) -> None:
        while self._due and self._come:
            record, letter = self._due[0], self._come[0]
            # A record that was a dead letter once keeps the headers of its first time.
            is_second_time = _OFFSET in dict(record.headers) and record.value == letter.value
            offset = record.offset if is_second_time else _offset(letter)
            if offset is None or offset < record.offset:
                self._come.popleft()
                self._blame_needless(letter, offset)
                continue
            self._due.popleft()
            if offset > record.offset:
                if not self._is_deleted_before:
                    self._blame_missing(record)
                continue
            self._come.popleft()
            self._is_deleted_before = False
            if not _is_same(record, letter):
                self._blame(letter, f"differs from {self._source}[{self._partition}]@{offset}")

    def _blame_missing(self, record: Message) -> None:
        what = f"this record without a session has no dead letter in {self._topic}"
        self._report.blame(
            Fault(FaultKind.DEAD_LETTER, what, self._source, self._partition, record.offset)
        )

    def _blame_needless(self, letter: Message, offset: int | None) -> None:
        if offset is None or offset >= self._starts.records:
            self._blame(letter, f"offset {offset} has its dead letter already, or needs none")

    def _blame(self, letter: Message, what: str) -> None:
        fault = Fault(FaultKind.DEAD_LETTER, what, self._topic, self._partition, letter.offset)
        self._report.blame(fault)


def _offset(letter: Message) -> int | None:
    return number_in(dict(letter.headers).get(_OFFSET))


def _is_same(record: Message, letter: Message) -> bool:
    headers = dict(letter.headers)
    reason = b"key-not-utf8" if record.key else b"no-key"
    about = {_TOPIC, _PARTITION, _REASON} - dict(record.headers).keys()
    return (
        (letter.key, letter.value) == (record.key, record.value)
        and list(letter.headers)[: len(record.headers)] == list(record.headers)
        and about <= headers.keys()
        and (_REASON not in about or headers[_REASON] == reason)
    )
