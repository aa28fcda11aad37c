"""A worker of the core alone, whose clock closes and whose policy changes where a law wants it."""

from hypothesis import strategies as st

from processor.core.session_state import SessionState
from processor.core.sessions import PartitionSessions
from processor.counters import CharsOverFour, count_tokens
from processor.wire import ChunkEncoder, chunk_headers, read_value
from tests.history import Message


def counted(record):
    """The record as the worker reads it."""
    text, carried, size_bytes = read_value(record.value)
    (tokens,) = count_tokens(CharsOverFour(), [text], 5000)
    return record._replace(token_count=tokens, carried=carried, size_bytes=size_bytes)


def message_of(chunk, policy, offset):
    encoder = ChunkEncoder(policy, CharsOverFour.name, "records", 0)
    headers = tuple(chunk_headers(chunk))
    return Message(offset, chunk.session.encode(), encoder.encode(chunk), 0, headers)


class Worker:
    """What a worker makes of a log: chunks, each with the policy that it was cut by."""

    def __init__(self, policy):
        self.made, self._entries = [], {}
        self._policy, self._sessions = policy, PartitionSessions(policy)

    def feed(self, items, clock_s=()):
        """Feed a stretch; behind the items of these indexes the clock is so many seconds on."""
        clocks = dict(clock_s)
        for index, (record, is_end) in enumerate(items):
            at = (record.offset, record.timestamp_ms)
            sessions = self._sessions
            self._keep(
                sessions.end(record.session, *at) if is_end else sessions.push(counted(record))
            )
            if index in clocks:
                self._keep(sessions.close_due(sessions.log_time_ms + 1000 * clocks[index]))

    def restart(self, log, position, policy):
        """Go on by another policy, from what is durable."""
        low = self._sessions.low_water(position)
        self._policy = policy
        self._sessions = PartitionSessions(policy, self._entries.values(), low.log_time_ms)
        self.feed([it for it in log if low.offset <= it[0].offset < position])

    def _keep(self, chunks):
        for chunk in chunks:
            self._entries[chunk.session] = SessionState.after(chunk)
            self.made.append((chunk, self._policy))

    @property
    def messages(self):
        return [message_of(*made, offset) for offset, made in enumerate(self.made)]


clocks = st.lists(st.tuples(st.integers(0, 40), st.sampled_from([3, 6, 30])), max_size=6)


def worked(log, both, cut, clock_s):
    """Return a worker that went through a log, by the second policy from ``cut`` on."""
    policy, later = both
    worker = Worker(policy)
    worker.feed(log[:cut], clock_s)
    if cut < len(log):
        worker.restart(log, log[cut][0].offset, later)
        worker.feed(log[cut:], clock_s)
    return worker
