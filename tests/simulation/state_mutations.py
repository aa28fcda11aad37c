"""Mutations of what is written and replayed: mark, checkpoints, entries."""

from dataclasses import replace
from unittest.mock import patch

import msgspec

from processor.core.accumulator import SessionAccumulator
from processor.core.session_state import SessionState
from processor.core.sessions import LowWater, PartitionSessions
from processor.protocol import loading, rule_change
from processor.protocol.changelog import (
    PARTITION_KEY,
    decode_sessions,
    encode_session,
    read_dormant,
)
from processor.protocol.state import PartitionState
from tests.simulation.client import SimulatedPartitionBroker
from tests.simulation.mutations import mutation


@mutation()
def low_water_off_by_one():
    original = PartitionSessions.low_water

    def low_water(self, next_offset):
        mark = original(self, next_offset)
        return mark._replace(offset=min(mark.offset + 1, next_offset))

    return [(PartitionSessions, "low_water", low_water)]


@mutation()
def replay_from_the_committed_offset():
    """Open records lie before it."""

    def look_back(self, _):
        self.position = self.seen

    return [(PartitionState, "look_back", look_back)]


@mutation()
def nothing_before_the_replay_is_remembered():
    """What a record there made a duplicate comes out a second time."""
    return [(PartitionState, "look_back", lambda *_: None)]


@mutation()
def low_water_entered_only_at_first_open():
    """After a checkpoint a session's next record is not its chunk's first."""
    original = PartitionSessions.low_water

    def low_water(self, next_offset):
        for session, mark in list(self._uncovered.items()):
            if mark.offset != self.state(session).records[0].offset:
                del self._uncovered[session]
        return original(self, next_offset)

    return [(PartitionSessions, "low_water", low_water)]


@mutation()
def checkpoint_in_place():
    """The order by first record is no order any more."""
    original = PartitionSessions.checkpoint

    def checkpoint(self):
        order = dict(self._uncovered)
        state = original(self)
        if state is not None and order[state.session].offset < state.next_offset:
            self._uncovered[state.session] = LowWater(state.next_offset, self.log_time_ms)
            self._uncovered.move_to_end(state.session, last=False)
        return state

    return [(PartitionSessions, "checkpoint", checkpoint)]


@mutation()
def checkpoint_without_its_records():
    original = PartitionSessions.checkpoint

    def checkpoint(self):
        state = original(self)
        return state and replace(state, records=())

    return [(PartitionSessions, "checkpoint", checkpoint)]


@mutation()
def low_water_taken_late():
    """Batches fed while the commit is under way move the mark past what it writes."""

    def late(state, transaction):
        return {**transaction.entries, PARTITION_KEY: state._entry()}  # noqa: SLF001

    return _rewritten_while_committing(late)


@mutation()
def entry_serialised_late():
    """The session has gone on since its chunk closed."""

    def late(state, transaction):
        entries = dict(transaction.entries)
        for key in entries:
            now = state.sessions.state(key.decode()) if key != PARTITION_KEY else None
            if now is not None:
                entries[key] = encode_session(replace(now, records=()))
        return entries

    return _rewritten_while_committing(late)


def _rewritten_while_committing(late):
    """Change a transaction's entries after its first await."""
    take, commit, taken_from = PartitionState.take, SimulatedPartitionBroker.commit, {}

    def remember(self, now_ms):
        taken = take(self, now_ms)
        if taken is not None:
            taken_from[id(taken[0])] = self
        return taken

    async def commit_late(self, transaction):
        await self.process.ask("waits", lambda: None, is_local=True)
        state = taken_from.pop(id(transaction))
        await commit(self, replace(transaction, entries=late(state, transaction)))

    return [
        (PartitionState, "take", remember),
        (SimulatedPartitionBroker, "commit", commit_late),
    ]


# What is replayed, and what is written.


@mutation()
def replay_not_skipped():
    """Records that are in a chunk or an entry are chunked again."""

    return restored_with(lambda _: {"next_offset": 0})


@mutation()
def dead_letters_again_on_replay():
    original = PartitionState._set_aside  # noqa: SLF001

    def set_aside(self, record, error):
        seen, self.seen = self.seen, 0
        original(self, record, error)
        self.seen = seen

    return [(PartitionState, "_set_aside", set_aside)]


@mutation()
def output_without_changelog():
    """Chunks land, the sessions' entries don't."""
    original = PartitionState.take

    def take(self, now_ms):
        taken = original(self, now_ms)
        if taken is None:
            return None
        entries = {PARTITION_KEY: taken[0].entries[PARTITION_KEY]}
        return replace(taken[0], entries=entries), taken[1]

    return [(PartitionState, "take", take)]


@mutation()
def session_forgotten_at_its_end():
    """It starts at t=1 when it goes on."""
    original = PartitionSessions.end

    def end(self, session, *rest):
        chunks = original(self, session, *rest)
        self.forget(session)
        return chunks

    return [(PartitionSessions, "end", end)]


@mutation(forgets=True)
def forgotten_before_an_open_record():
    """A replay begins before records that are chunked, and takes them for new."""
    dropped = PartitionSessions.drop_forgotten

    def drop(self):
        with patch.object(PartitionSessions, "oldest_opened_at_ms", None):
            return dropped(self)

    return [(PartitionSessions, "drop_forgotten", drop)]


@mutation(forgets=True)
def forgotten_only_when_dropped():
    """Then it is a matter of when the worker tidied up, and of restarts."""

    def never(self, now_ms):
        pass

    return [(SessionAccumulator, "_begin_anew_if_forgotten", never)]


@mutation(forgets=True)
def time_of_the_end_not_kept():
    original = SessionState.after.__func__

    def after(cls, chunk):
        return replace(original(cls, chunk), last_at_ms=0)

    return [(SessionState, "after", classmethod(after))]


@mutation()
def records_counted_after_the_entry():
    """The entry's counts lack the transaction that they are written with."""
    original = PartitionState._entry  # noqa: SLF001

    def entry(self):
        value = original(self)
        decoded = msgspec.msgpack.decode(value[1:])
        decoded["counts"][0] -= sum(1 for _ in self.sessions) > 0
        return value[:1] + msgspec.msgpack.encode(decoded)

    return [(PartitionState, "_entry", entry)]


@mutation()
def digest_not_restored():
    return restored_with(lambda session: {"digest": SessionState.new(session).digest})


def restored_with(changes_of):
    """Have every session restored with other values than its entry has."""

    def opened(entries, where):
        for state in decode_sessions(entries, where):
            yield replace(state, **changes_of(state.session))

    def dormant(key, value):
        entry = read_dormant(key, value)
        return entry and msgspec.structs.replace(entry, **changes_of(key.decode()))

    return [(rule_change, "decode_sessions", opened), (loading, "read_dormant", dormant)]
