"""A worker that goes on from a rebuilt changelog writes what it would have from its own."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.core.errors import StateError
from processor.core.sessions import PartitionSessions
from processor.counters import CharsOverFour
from processor.protocol.changelog import decode_partition, decode_sessions
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.port import Batch, Head, Survey
from processor.protocol.rebuild import Rebuild
from processor.protocol.start_checks import first_entry, world_agrees
from processor.protocol.state import PartitionState
from tests.history import Message
from tests.strategies import logs, policies


def log_of(items, strays):
    """The log as it is read; the items of some indexes have no session, two of them an end."""
    keys = dict(strays)
    return [
        Message(
            it.offset,
            keys.get(index, it.session.encode()),
            None if is_end else it.value,
            it.timestamp_ms,
        )
        for index, (it, is_end) in enumerate(items)
    ]


class World:
    """A broker's four partitions and the group's offset, as one app writes them."""

    def __init__(self, config, log):
        self.config, self.log = config, log
        self.entries, self.chunks, self.letters, self.committed = {}, [], [], None
        self.now_ms = 0

    @property
    def end(self):
        return self.log[-1].offset + 1 if self.log else 0

    def survey(self, committed):
        fingerprints = {it.offset: it.timestamp for it in self.log}
        return Survey(4, 0, self.end, committed, fingerprints)

    def opened(self):
        """A worker's state, as an opening of the partition makes it."""
        entry = decode_partition(self.entries, "c[0]")
        survey = self.survey(self.committed)
        world_agrees(entry, survey, self.config, "c[0]")
        entry = entry or first_entry(survey, self.config)
        states = decode_sessions(self.entries, "c[0]")
        sessions = PartitionSessions(self.config.policy, states, entry.log_time_ms)
        return PartitionState(self.config, 0, entry, sessions)

    def work(self, until, *, batch_size, clock_s=(), is_lost=False):
        """Feed up to an offset and commit after each batch; unless the last one is lost."""
        state, clocks = self.opened(), dict(clock_s)
        while state.position < until:
            records = [it for it in self.log if state.position <= it.offset < until][:batch_size]
            following = records[-1].offset + 1 if records else until
            ahead = 1000 * clocks.get(following, -1000)
            head = Head(state.sessions.log_time_ms + ahead, following)
            state.feed(Batch(0, 1, state.position, following, records, 1 << 50, head))
            if state.position < until:
                self.commit(state)
        if not is_lost:
            self.commit(state)

    def commit(self, state):
        self.now_ms += 10_000  # so that a moved position alone is worth a transaction
        transaction, _ = state.take(self.now_ms) or (None, None)
        if transaction is None:
            return
        self.chunks += [(it.key, it.value, it.headers) for it in transaction.output]
        self.letters += [
            SimpleNamespace(headers=it.headers, value=it.value) for it in transaction.dead_letters
        ]
        merged = {**self.entries, **transaction.entries}
        self.entries = {key: value for key, value in merged.items() if value is not None}
        self.committed = transaction.next_offset

    def rebuilt(self, committed, size):
        """The same world with the changelog lost and made again."""
        rebuild = Rebuild(self.config, 0, self.survey(committed), 0)
        for offset, (_, value, _) in enumerate(self.chunks):
            rebuild.take_chunk(value, offset)
        for letter in self.letters:
            rebuild.take_letter(letter)
        for start in range(0, len(self.log), size):
            if not rebuild.take_records(self.log[start : start + size], 1 << 50):
                break
        made, other = rebuild.finish(), World(self.config, self.log)
        other.entries, other.committed = made.entries, made.entry.seen
        other.chunks, other.letters = list(self.chunks), list(self.letters)
        return other


strays = st.lists(st.tuples(st.integers(0, 40), st.sampled_from([None, b"", b"\xff"])), max_size=6)
clocks = st.lists(st.tuples(st.integers(0, 60), st.sampled_from([3, 6, 30])), max_size=6)


def by_session(world):
    found = {}
    for key, *rest in world.chunks:
        found.setdefault(key, []).append(rest)
    return found


@given(logs(), policies, strays, clocks, st.integers(0, 60), st.integers(1, 9), st.data())
def test_rebuilt_state_goes_on_as_the_lost_one_would_have(  # noqa: PLR0913, PLR0917
    items, policy, strays, clock_s, stop, batch_size, data
):
    """Whether or not the group still has its offset, and however much was checkpointed."""
    max_replay = data.draw(st.sampled_from([200_000, 3]))
    config = ChunkerConfig("records", policy, CharsOverFour(), max_replay)
    world = World(config, log_of(items, strays))
    is_lost = data.draw(st.booleans())
    world.work(min(stop, world.end), batch_size=batch_size, clock_s=clock_s, is_lost=is_lost)
    committed = data.draw(st.sampled_from([world.committed, None]))
    if committed is None and policy.forget_ended_after_s and world.chunks:
        with pytest.raises(StateError, match="nothing tells which ends have been processed"):
            world.rebuilt(committed, batch_size)
        return
    again = world.rebuilt(committed, batch_size)

    state = world.opened()
    if committed is not None:
        assert decode_partition(again.entries, "c[0]").seen == state.seen
    for one in (world, again):
        one.work(one.end, batch_size=batch_size)
    assert by_session(again) == by_session(world)
    assert [it.headers for it in again.letters] == [it.headers for it in world.letters]
    found = [decode_partition(it.entries, "c[0]") for it in (world, again)]
    assert found[0].counts == found[1].counts
    assert found[0].seen == found[1].seen
