"""The session table: a ``faust.Table`` whose rows are the partitions' own state.

A stock Table sends each write at once through the plain producer. Here a write is staged in the
transaction of the session's partition, and a read looks at what that partition holds.
"""

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

import faust
from faust.stores import memory

from processor.core.session_state import SessionState
from processor.protocol.partitions import Partitions
from processor.protocol.state import PartitionState

if TYPE_CHECKING:
    from faust.types import TP


class SessionRows(MutableMapping[str, SessionState]):
    """The sessions of all partitions that are open here, by session."""

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions

    def __getitem__(self, session: str) -> SessionState:
        for _, state in self._states():
            found = state.sessions.state(session)
            if found is not None:
                return found
        raise KeyError(session)

    def __setitem__(self, session: str, value: SessionState) -> None:
        self._of(session).put(value)

    def __delitem__(self, session: str) -> None:
        self._of(session).forget(session)

    def __iter__(self) -> Iterator[str]:
        for _, state in self._states():
            yield from state.sessions

    def __len__(self) -> int:
        return sum(len(state.sessions) for _, state in self._states())

    def partition_of(self, session: str) -> int:
        """Return the partition that holds ``session``.

        Raises:
            KeyError: None that is open here does.
        """
        for number, state in self._states():
            if state.sessions.state(session) is not None:
                return number
        raise KeyError(session)

    def _states(self) -> Iterator[tuple[int, PartitionState]]:
        for partition in self._partitions:
            if isinstance(partition.state, PartitionState):
                yield partition.number, partition.state

    def _of(self, session: str) -> PartitionState:
        number = self.partition_of(session)
        return next(state for partition, state in self._states() if partition == number)


class _Store(memory.Store[str, SessionState]):
    """Faust's store over the rows; there is nothing of its own to clear or recover."""

    def __init__(self, rows: SessionRows, *args: Any, **arguments: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **arguments)
        self.data = rows

    async def on_recovery_completed(self, active_tps: "set[TP]", standby_tps: "set[TP]") -> None:
        pass


class _Staged:
    """What Faust wants back from a write: a message that knows its partition."""

    def __init__(self, partition: int) -> None:
        self.message = self
        self.partition = partition


class SessionTable(faust.Table[str, SessionState]):
    """``app.tables["sessions"]``: answers for every session that this worker holds."""

    def __init__(self, app: Any, **arguments: Any) -> None:  # noqa: ANN401
        self._rows = SessionRows(app.partitions)
        super().__init__(app, **arguments)

    def partition_for_key(self, key: str) -> int:
        """Return the partition that the session's records come from."""
        return self._rows.partition_of(key)

    def send_changelog(self, partition: int | None, key: str, *_: object, **__: object) -> Any:  # noqa: ANN401 - a stand-in for Faust's future
        """Send nothing: the row's own write has staged the entry."""
        return _Staged(self._rows.partition_of(key) if partition is None else partition)

    def _new_store(self) -> _Store:
        return _Store(self._rows, self.app.conf.store, self.app, self, loop=self.loop)
