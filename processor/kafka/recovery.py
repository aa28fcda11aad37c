"""Faust's recovery replaced: after a rebalance, stop the flow, open partitions, resume.

The changelog is never subscribed: each partition reads its own, after its fence. Faust calls
``on_rebalance`` for every assignment and runs ``_restart_recovery`` as a background task.
"""

import logging
from typing import Any, Final

from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from mode import Service

from processor.kafka.transport import WorkerApp

#: Not of this module's name: Faust logs the coming and going of its services under that one.
group_log: Final = logging.getLogger("processor.group")


class PartitionRecovery(Recovery):
    """Opens the partitions of each new assignment, then lets records flow."""

    app: WorkerApp  # type: ignore[assignment]  # Faust's AppT knows nothing of ours
    _rebalance = 0

    async def on_rebalance(
        self,
        assigned: object,  # noqa: ARG002 - Faust's signature
        revoked: object,  # noqa: ARG002
        newly_assigned: object,  # noqa: ARG002
        generation_id: int = 0,
    ) -> None:
        """Start to open what was assigned, unless the group has moved on since."""
        # No revocation can start before this returns: the two numbers belong together.
        if generation_id == self.app.consumer_generation_id:
            self._generation_id = generation_id
            self._rebalance = self.app.rebalancing_count
            self.signal_recovery_start.set()

    @Service.task
    async def _restart_recovery(self) -> None:
        while not self.should_stop:
            if await self.wait_for_stopped(self.signal_recovery_start.wait()):
                return
            self.signal_recovery_start.clear()
            await self._open_partitions(self._generation_id, self._rebalance)

    async def _open_partitions(self, generation_id: int, rebalance: int) -> None:
        app = self.app

        def is_current() -> bool:
            now = (app.consumer_generation_id, app.rebalancing_count)
            return now == (generation_id, rebalance)

        app.consumer.stop_flow()
        app.flow_control.suspend()
        assigned = [it for it in app.consumer.assignment() if it.topic == app.flow.input_topic]
        if not is_current():
            return
        numbers = {it.partition for it in assigned}
        extra = {"topic": app.flow.input_topic, "partitions": sorted(numbers)}
        group_log.info("partitions assigned", extra=extra)
        await app.partitions.assign(numbers, is_current)
        if is_current():
            await self._resume_streams(generation_id=generation_id)


class PartitionTables(TableManager):
    """Faust's table manager with our recovery, and without waiting for a changelog."""

    @property
    def recovery(self) -> Recovery:
        """The recovery service, made when first asked for."""
        if self._recovery is None:
            self._recovery = PartitionRecovery(self.app, self, beacon=self.beacon, loop=self.loop)
        return self._recovery

    async def on_start(self) -> None:
        """Start at once; Faust waits two seconds for tables to be declared."""
        await self._update_channels()
        await self.recovery.start()

    async def _update_channels(self, *_: Any) -> None:  # noqa: ANN401
        self._tables_finalized.set()
        for table in self.values():
            await table.maybe_start()
        self._tables_registered.set()
