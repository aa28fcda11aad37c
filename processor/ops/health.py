"""Whether a worker is alive, and whether it is ready: what is wrong, and what to do.

Alive says: leave it running. A broker that is away, a rebalance, a partition being opened are no
reason to start it again; a partition that stands still though it should not is one. Ready says: it
processes what it was given. A worker that the group gave nothing, since there are more workers
than partitions, is ready.
"""

from typing import Final, NamedTuple

from processor.ops.vitals import Vitals
from processor.protocol.partition import Phase

#: Twice what may pass between two beats of a loop that is only busy.
LONGEST_BEAT_S: Final = 30.0
_NOT_OPEN: Final = {it.value for it in Phase if it is not Phase.READY}


class Problem(NamedTuple):
    """Something that is wrong.

    Attributes:
        what: What it is, and where.
        remedy: What to do.
    """

    what: str
    remedy: str


def why_not_live(vitals: Vitals, beat_s_ago: float) -> list[Problem]:
    """Return why the process should be started again; nothing when it should not."""
    problems = [
        Problem(it, "start the worker again; what is not committed is replayed")
        for it in vitals.stuck
    ]
    if beat_s_ago > LONGEST_BEAT_S:
        problems.append(
            Problem(
                f"the event loop has not run its tasks for {beat_s_ago:.0f} s",
                "start the worker again, and report the stacks that it logs",
            )
        )
    return problems


def why_not_ready(vitals: Vitals, silence_s: float) -> list[Problem]:
    """Return why the worker does not process all it was given; nothing when it does.

    Args:
        vitals: The worker as it is now.
        silence_s: Seconds without an answer after which the brokers count as away.
    """
    silent_s = vitals.answered_s_ago
    if silent_s is None:
        return [
            Problem(
                "no broker has answered yet",
                "wait, or check KAFKA_BOOTSTRAP_SERVERS, the network and the brokers",
            )
        ]
    problems = []
    if silent_s > silence_s:
        problems.append(
            Problem(
                f"no broker has answered for {silent_s:.0f} s",
                "check brokers and network; once they are back the worker goes on by itself",
            )
        )
    if not vitals.is_joined:
        problems.append(
            Problem(
                "joining the group: it has not given us partitions since the last rebalance",
                "wait; if it lasts, look for a worker that comes and goes in the group",
            )
        )
    problems += [
        Problem(
            f"partition {it.partition} is {it.state}",
            "wait; if it lasts, the log says why it could not be opened",
        )
        for it in vitals.partitions
        if vitals.is_joined and it.state in _NOT_OPEN
    ]
    return problems
