"""A router's partition over a changelog in memory, and a format that has something to remember."""

import json

from processor import formats
from processor.core.errors import NoSessionError
from processor.formats.format import FormatEntry, SessionRecord
from processor.protocol.changelog import Counts, PartitionEntry, decode_partition
from processor.protocol.job import Opened, Remedies
from processor.protocol.port import Batch, Head
from processor.protocol.routing import RouterConfig
from tests.history import Message

REMEDIES = Remedies("start over", "the tools", "all is lost", "that were not routed")


class FirstLineNames:
    """Lines of JSON: the session is on the first one alone, as in transcripts of some tools.

    ``{"many": [...]}`` holds records of several sessions; a history is given once.
    """

    def __init__(self, options, memory):
        self._options = options
        self._memory = memory

    def read(self, value):
        line = json.loads(value) if value.startswith(b"{") else {}
        if "many" in line:
            return [it for session, text in line["many"] for it in self._once(session, text)]
        if "session" in line:
            self._memory["session"] = line["session"]
        session = self._memory.get("session", self._options.session)
        if session is None:
            message = "the line names no session"
            raise NoSessionError(message)
        return (SessionRecord(session, value, (("event-time", b"then"),)),)

    def _once(self, session, text):
        if session is None:
            yield SessionRecord(None, text.encode(), (("event-time", b"then"),))
            return
        if self._memory.get(f"seen {session} {text}") is None:
            self._memory[f"seen {session} {text}"] = "1"
            yield SessionRecord(session, text.encode())


def add_format(monkeypatch):
    """Have the table know ``FirstLineNames``, for values that are JSON objects."""
    named = FormatEntry(FirstLineNames, lambda value: value.startswith(b"{"))
    # First in the order of the table, whose last one takes anything.
    monkeypatch.setattr(formats, "FORMATS", {"first-line": named, **formats.FORMATS})


def config(**changes):
    values = {
        "topic": "telemetry",
        "records_topic": "records",
        "records_partitions": 3,
        "partition_of": lambda key: key[-1] % 3,
        "remedies": REMEDIES,
    }
    return RouterConfig(**values | changes)


def raw(offset, value, key=None, headers=()):
    value = json.dumps(value).encode() if isinstance(value, dict) else value
    return Message(offset, key, value, 1, headers)


class Router:
    """One partition; ``reopen`` is what the next owner finds."""

    def __init__(self, partition_count=1, *, omitted=(), **changes):
        self.config = config(**changes)
        self.entries, self.sent, self.dead_letters, self.tallies = {}, [], [], []
        self._count = partition_count
        self._omitted = frozenset(omitted)
        self.reopen()

    def reopen(self):
        first = PartitionEntry(
            low=0,
            log_time_ms=0,
            seen=0,
            partition_count=self._count,
            rule=self.config.rule,
            fingerprint=None,
            counts=Counts(),
            topic="telemetry",
        )
        entry = decode_partition(self.entries, "telemetry[0]") or first
        changelog = self.config.new_changelog()
        changelog.take(self.entries.items())
        opened = Opened(0, "telemetry[0]", entry, changelog, 0, self._omitted)
        self.state = self.config.restore(opened)

    def feed(self, *records, head=None):
        start = self.state.position
        stop = records[-1].offset + 1 if records else start
        self.state.feed(Batch(0, 1, start, stop, records, 0, head))

    def commit(self, now_ms=0):
        taken = self.state.take(now_ms)
        if taken is None:
            return False
        transaction, told = taken
        self.sent += transaction.output
        self.dead_letters += transaction.dead_letters
        self.tallies.append(told.tally)
        for key, value in transaction.entries.items():
            if value is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = value
        return True

    @property
    def records(self):
        return [(it.key.decode(), it.value) for it in self.sent]

    def caught_up(self):
        self.feed(head=Head(0, self.state.position))
