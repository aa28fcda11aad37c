"""A simulated Kafka: one input partition with its topics, coordinators and the group.

Theory of operation. What a client sends takes effect here at once or not at all; delays, lost
answers and late copies are the scheduler's (``scheduler.py``). Only what Kafka does after it has
answered happens by itself, step by step: the markers that end a transaction reach the partitions
one by one and in any order (``write_marker``), a transaction times out (``time_out``), retention
eats the log. Transactions are those of Kafka 4.1 for a client of its old protocol, such as
aiokafka: one epoch for all transactions of an opening, and a write to a partition that is not
part of an open transaction is refused.
"""

from collections import defaultdict
from typing import NamedTuple

from processor.core.errors import ConfigError, FencedError, UnreachableError
from processor.protocol.port import TooLargeError
from tests.simulation.log import Log

CHUNKS, CHANGELOG, DEAD_LETTERS, OFFSETS = "chunks", "changelog", "dead-letters", "offsets"
TOPICS = (CHUNKS, CHANGELOG, DEAD_LETTERS, OFFSETS)
#: What the chunks topic takes; the policy's own cap lies below, as the start checks demand.
MAX_MESSAGE_BYTES = 7000
LOG_APPEND_TIME = 1
FOREIGN = "someone else"


class AgainError(Exception):
    """The last transaction is not resolved yet (CONCURRENT_TRANSACTIONS): ask again."""


class InputRecord(NamedTuple):
    """A record of the records topic, as a client gives it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple = ()
    timestamp_type: int = LOG_APPEND_TIME


class TransactionState:
    """What the transaction coordinator knows of one transactional id.

    Attributes:
        epoch: Of the producer that may write.
        topics: Part of the open or resolving transaction.
        outcome: Prepared and on its way to the partitions: ``True`` to commit, ``None`` if none.
        unmarked: Where its marker is still to be written.
        last: Epoch and outcome of the transaction before.
    """

    __slots__ = ("epoch", "last", "outcome", "topics", "unmarked")

    def __init__(self):
        self.epoch = 0
        self.topics = set()
        self.outcome = None
        self.unmarked = []
        self.last = (0, False)

    def prepare(self, *, commit):
        self.outcome, self.unmarked = commit, sorted(self.topics)

    def check(self, epoch):
        if epoch != self.epoch:
            message = f"epoch {epoch}, the newest is {self.epoch}"
            raise FencedError(message)


class SimulatedPartition:
    """One partition number of all topics, and the coordinators that serve it.

    Attributes:
        remembered: Offsets in which a record with the id of another is left out.
        forget_ms: After so long a session that has ended begins anew; ``None`` for never.
    """

    def __init__(self, number, remembered=0, forget_ms=None):
        self.number = number
        self.remembered = remembered
        self.forget_ms = forget_ms
        self.records = Log()
        self.logs = {topic: Log() for topic in TOPICS}
        self.logs[CHUNKS].max_bytes = MAX_MESSAGE_BYTES
        self.ids = defaultdict(TransactionState)
        self.committed = self.before = None
        self.stale_until = self.loading_until = 0.0
        self.foreign_until = None

    # What producers of records do.

    def append(self, timestamp_ms, key, value, owner=None, headers=()):
        offset = self.records.high_watermark
        self.records.append(InputRecord(offset, timestamp_ms, key, value, headers), owner)

    # What the transaction coordinator answers.

    def init_producer(self, name):
        """Return a new epoch; an open transaction is aborted first, a prepared one completed."""
        state = self.ids[name]
        if state.outcome is not None:
            raise AgainError
        state.epoch += 1
        if state.topics:
            state.prepare(commit=False)
            raise AgainError
        return state.epoch

    def add_topic(self, name, epoch, topic):
        state = self.ids[name]
        state.check(epoch)
        if state.outcome is not None:
            raise AgainError
        state.topics.add(topic)

    def end(self, name, epoch):
        state = self.ids[name]
        state.check(epoch)
        if state.outcome is None and state.topics:
            state.prepare(commit=True)
        elif state.outcome is False or (state.outcome is None and state.last != (epoch, True)):
            message = "no transaction to commit"
            raise FencedError(message)

    def write_marker(self, name, pick):
        """Write one marker of a transaction that is being resolved; return whether it is done."""
        state = self.ids[name]
        topic = state.unmarked.pop(pick % len(state.unmarked))
        decided = self.logs[topic].resolve(name, commit=state.outcome)
        if topic == OFFSETS and decided:
            self.before, self.committed = self.committed, decided[-1]
        if state.unmarked:
            return False
        state.last = (state.epoch, state.outcome)
        state.topics, state.outcome = set(), None
        return True

    def resolving(self):
        """Return the transactional ids with markers still to be written."""
        return [name for name, state in self.ids.items() if state.outcome is not None]

    def time_out(self):
        """Abort open transactions, as the coordinator does with those that take too long."""
        late = [it for it in self.ids.values() if it.outcome is None and it.topics]
        for state in late:
            state.epoch += 1
            state.prepare(commit=False)
        return bool(late)

    # What the leaders of the partitions answer.

    def produce(self, name, epoch, topic, values):
        """Append values; one that is too large is refused, and it alone.

        Raises:
            TooLargeError: A chunk of one record was refused.
        """
        self._check_open(name, epoch, topic)
        log, refused = self.logs[topic], None
        for value in values:
            if log.max_bytes is not None and len(value.value) > log.max_bytes:
                refused = value
            else:
                log.append(value, name)
        if refused is not None:
            if refused.lone_offset is None:
                message = "a chunk of several records is too large"
                raise ConfigError(message)
            raise TooLargeError(refused.lone_offset)

    def commit_offset(self, name, epoch, offset):
        self._check_open(name, epoch, OFFSETS)
        self.logs[OFFSETS].append(offset, name)

    def _check_open(self, name, epoch, topic):
        state = self.ids[name]
        state.check(epoch)
        if state.outcome is not None or topic not in state.topics:
            message = f"{topic} is not part of an open transaction"
            raise FencedError(message)

    def committed_offset(self, now):
        """Return the group's offset; one that has just moved house may lag or not answer."""
        if now < self.loading_until:
            message = "the group's coordinator is loading"
            raise UnreachableError(message)
        return self.before if now < self.stale_until else self.committed

    # Someone else's transaction in the changelog hides what is committed after it.

    def open_foreign(self, until):
        self.logs[CHANGELOG].append((b"nobody's", None), FOREIGN)
        self.foreign_until = until

    def resolve_foreign(self):
        self.logs[CHANGELOG].resolve(FOREIGN, commit=False)
        self.foreign_until = None


class Group:
    """The consumer group: who has which partition, since which generation."""

    def __init__(self, owners):
        self.generation = 1
        self.owners = owners

    def give(self, number, name):
        self.owners[number] = name
        self.generation += 1

    def join(self, name):
        """Return the generation and the partitions of a member in it."""
        return self.generation, {n for n, owner in enumerate(self.owners) if owner == name}
