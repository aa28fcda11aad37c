"""Sessions of unlucky records, all sent to one worker, which is killed once on the way.

A test gives its records a session beside itself, and asks the outcome about it. Every session is
in the same two partitions as all the others, so what one of them broke all would show.
"""

import asyncio
import json
from dataclasses import dataclass, field

from tests.e2e import asking
from tests.e2e.chunk_reading import SeenChunk, read_chunk
from tests.e2e.producing import Line
from tests.e2e.verdict import Verdict
from tests.e2e.workers import Deployment

AFTER = b'"after the restart"'
CARRIERS = ("value", "text", "base64")


@dataclass
class Given:
    """What the tests of a module send, before the kill."""

    lines: list[Line] = field(default_factory=list)
    compressed: list[Line] = field(default_factory=list)
    """What the records topic takes only so."""

    def session(self, name, *values, compressed=False):
        """Give a session these records, and return them as bytes."""
        values = tuple(it if isinstance(it, bytes) else it.encode() for it in values)
        lines = [Line(name.encode(), value) for value in values]
        (self.compressed if compressed else self.lines).extend(lines)
        return values

    def line(self, *arguments, **more):
        self.lines.append(Line(*arguments, **more))

    def sessions(self):
        keys = dict.fromkeys(it.key for it in [*self.lines, *self.compressed])
        return [key for key in keys if key and key.isascii()]

    @property
    def record_count(self):
        """How many records of sessions there are, ends not counted."""
        keys = self.sessions()
        return sum(
            it.key in keys and it.value is not None for it in [*self.lines, *self.compressed]
        )


@dataclass
class Outcome:
    """What came out, by session."""

    verdict: Verdict
    exit_code: int
    said: str
    """What the worker that was killed had logged."""
    chunks: dict[str, list[SeenChunk]]
    carriers: dict[str, list[str]]
    dead_letters: list

    def values(self, session):
        """Return the bytes of the session's records; each has one after the restart too."""
        values = [it.value for chunk in self.chunks[session] for it in chunk.records]
        assert values.pop() == AFTER
        return tuple(values)


def play(app: Deployment, given: Given) -> Outcome:
    """Send everything to a worker, kill it, start another, and end each session."""
    # The producer's own timestamps stay: no order may come from them.
    configs = {"message_timestamp_type": "CreateTime"}
    asyncio.run(
        asking.create_topic(app.bootstrap, app.records, partitions=app.partitions, **configs)
    )
    app.create_topics()
    first = app.start()
    app.send(given.lines)
    app.send(given.compressed, compression_type="gzip")
    app.wait_until_caught_up()
    app.kill(first)
    second = app.start()
    app.send([Line(key, AFTER) for key in given.sessions()])
    app.send([Line(key, None) for key in given.sessions()])
    verdict = app.judged()
    found = app.read(app.chunks)
    outcome = Outcome(
        verdict, second.terminate(), first.output(), {}, {}, app.read(app.topics.dead_letter_topic)
    )
    for message in found:
        chunk = read_chunk(message.value)
        outcome.chunks.setdefault(chunk.session, []).append(chunk)
        outcome.carriers.setdefault(chunk.session, []).extend(
            carrier
            # Python refuses integers of more than 4,300 digits, JSON does not.
            for record in json.loads(message.value, parse_int=float)["records"]
            for carrier in CARRIERS
            if carrier in record
        )
    return outcome
