"""The end of a history: no more faults, and everything has to come out."""

from tests.simulation.oracle import (
    ViolationError,
    check_partition,
    entries_of,
    mark_of,
    needed_from,
)
from tests.simulation.scheduler import Fate

_ROUNDS = 120
_PASSES = 12
#: A transaction that nobody resolves by then is aborted by its coordinator.
_TIMEOUT_ROUND = 40


def drain(world, ending):
    """Let producers finish and workers catch up, then check every promise.

    Args:
        ending: Odd: a fresh worker takes over from whatever is left; even: the survivors go on.
            From 2 up, retention first takes all that it may.

    Raises:
        ViolationError: A promise is broken, or the log is not worked off.
    """
    world.say("---", "drain by", "a fresh worker" if ending % 2 else "the survivors")
    _end_of_faults(world)
    if ending % 2:
        for worker in world.live():
            world.kill(worker)
    if ending >= 2:
        for partition in world.partitions:
            partition.records.start = max(partition.records.start, needed_from(partition))
    for n in range(_ROUNDS):
        if n == _TIMEOUT_ROUND:
            for partition in world.partitions:
                partition.time_out()
        _staff(world)
        _work(world)
        if all(map(_is_drained, world.partitions)):
            break
        world.advance(1.0)
    else:
        message = "stuck: the log is not worked off"
        raise ViolationError(message)
    _deliver_all(world)
    for partition in world.partitions:
        check_partition(partition)


def _end_of_faults(world):
    world.learns_late = False
    for number, partition in enumerate(world.partitions):
        while world.scripts[number]:
            world.append(number)
        world.reveal(number, commit=True)
        if partition.foreign_until is not None:
            partition.resolve_foreign()
        partition.stale_until = partition.loading_until = 0.0
    for worker in world.live():
        worker.is_paused, worker.may_learn = False, True
        worker.run()
    world.bury()


def _staff(world):
    """Give the partitions of workers that are gone to one that is there."""
    live = {worker.name for worker in world.live()}
    heir = min(live, default="Z")
    if not live:
        world.start(heir)
        live = {heir}
    for number, owner in enumerate(world.group.owners):
        if owner not in live:
            world.group.give(number, heir)


def _work(world):
    """Let every worker do what there is to do without time passing."""
    for _ in range(_PASSES):
        is_idle = True
        for worker in world.live():
            for request in worker.ready():
                if request in worker.pending and (request.is_ready is None or request.is_ready()):
                    worker.complete(request, Fate.DONE)
                    is_idle = False
            world.bury()
        for partition in world.partitions:
            while partition.resolving():
                world.write_marker(partition, 0)
        if is_idle:
            return


def _is_drained(partition):
    end = partition.records.high_watermark
    if partition.committed != end or any(it.topics for it in partition.ids.values()):
        return False
    entries = entries_of(partition)
    return mark_of(partition) == end and not any(it.get("open") for it in entries.values())


def _deliver_all(world):
    """What is still in the network arrives too, and must change nothing."""
    while world.network:
        world.deliver(0)
        for partition in world.partitions:
            while partition.resolving():
                world.write_marker(partition, 0)
