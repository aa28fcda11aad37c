"""The world of one history: broker, group, network, workers, time, and what can happen to them.

Every kind of action is a method ``on_…``; one that makes no sense at the moment does nothing, so
any part of a history is a history, and a failing one can be cut down to what matters.
"""

from dataclasses import replace
from typing import NamedTuple

from processor.core.errors import ConfigError, ProcessorError, StateError, UnreachableError
from processor.core.policy import ChunkPolicy, OrIdle
from processor.protocol.chunking import ChunkerConfig
from tests.builders import WordCounter
from tests.simulation.broker import AgainError, Group, SimulatedPartition
from tests.simulation.oracle import ViolationError, check_mark, needed_from
from tests.simulation.scheduler import Fate
from tests.simulation.worker import Worker

NAMES = ("A", "B", "C")
POLICY = ChunkPolicy(
    max_tokens=6, flush=OrIdle(10), max_age_s=24, max_chunk_bytes=6000, max_chunk_records=4
)
#: Start of virtual time in Unix milliseconds.
_EPOCH_MS = 1_000_000
#: A coordinator that has moved shows an old offset at most this long; see ``start_checks.py``.
_STALE_S = 3.0
_STALE_PAUSE_S = 30.0
_FOREIGN_S = 40.0
#: How far timestamps may step back; as a worker's skew, below the grace.
_STEP_BACK_MS = 4000
_MOMENT_S = 0.5


class Action(NamedTuple):
    """One thing that happens; what the numbers mean depends on its kind."""

    kind: str
    worker: int
    partition: int
    pick: int
    fate: Fate = Fate.DONE


class World:
    """Everything that a history acts on.

    Args:
        history: Its scripts and settings.
        trace: Gets a line for whatever happens, if given.
    """

    def __init__(self, history, trace=None):
        self.trace = trace
        self.now = 0.0
        self.scripts = [list(script) for script in history.scripts]
        self.partitions = [
            SimulatedPartition(n, history.remembered, history.forget_ms)
            for n in range(len(history.scripts))
        ]
        self.group = Group([NAMES[0]] * len(history.scripts))
        self.network = []
        self.config = ChunkerConfig(
            "records",
            replace(
                POLICY,
                deduplicate_records=history.remembered,
                forget_ended_after_s=(history.forget_ms or 0) / 1000,
            ),
            WordCounter(),
            max_replay_records=history.max_replay,
        )
        self.learns_late = history.learns_late
        self.skews_ms = dict(zip(NAMES, history.skews_ms, strict=True))
        self.workers = {}
        self.failures = []
        self.ended = []
        self._dice = 0
        self._hidden = {}
        self._stale_again_at = 0.0
        for name in NAMES[:2]:
            self.start(name)

    @property
    def now_ms(self):
        return _EPOCH_MS + round(self.now * 1000)

    def say(self, who, *what):
        if self.trace is not None:
            text = " ".join(str(it) for it in what if it != "")
            self.trace.append(f"t={self.now:<6.1f} {who} {text}")

    def draw(self, count):
        """Return a number below ``count`` that the present action decides."""
        self._dice, drawn = divmod(self._dice, count)
        return drawn

    def do(self, action):
        """Let one action happen, and the workers run until they wait again."""
        self._dice = action.pick
        getattr(self, "on_" + action.kind)(action)
        self.bury()

    # What workers and their requests do to the world.

    def send_late(self, sender, request):
        self.network.append((f"{sender}'s {request.name}", request.effect))

    def leave(self, worker):
        others = [it for it in self.live() if it is not worker]
        for number, owner in enumerate(self.group.owners):
            if owner == worker.name and others:
                self.group.give(number, others[self.draw(len(others))].name)
        self.kill(worker)

    def lose_position(self, worker, number, position):
        """Retention passed a fetch position: the end of a zombie, a fault of anyone else."""
        if worker.is_owner(number):
            message = f"[{number}] position {position} of the owner was eaten"
            raise ViolationError(message)
        worker.end(UnreachableError("zombie's position was eaten"))

    def live(self):
        return [it for it in self.workers.values() if not it.is_dead]

    def start(self, name):
        self.workers[name] = Worker(name, self, self.skews_ms.get(name, 0))

    def kill(self, worker):
        worker.drop()
        self.failures += worker.loop.failures((ProcessorError, AgainError)) + worker.loop.faults

    def bury(self):
        """Take out the workers that have ended by themselves; only a fault may do that."""
        while self.ended:
            worker = self.ended.pop()
            if worker.is_dead:
                continue
            self.kill(worker)
            if isinstance(worker.fatal, StateError | ConfigError):
                message = f"{worker.name} gave up: {type(worker.fatal).__name__}: {worker.fatal}"
                raise ViolationError(message)

    # Workers.

    def on_go(self, action):
        """A worker makes a step: this one, or the next that can; if none can, a moment passes."""
        for name in NAMES[action.worker :] + NAMES[: action.worker]:
            worker = self.workers.get(name)
            if worker is None or worker.is_dead or worker.is_paused:
                continue
            ready = worker.ready()
            if ready:
                worker.complete(ready[action.pick % len(ready)], action.fate)
                return
        self.pass_moment(action.pick)

    def on_crash(self, action):
        worker = self._worker(action)
        if worker is not None:
            self.say(worker.name, "CRASHES")
            self.kill(worker)

    def on_start(self, action):
        name = NAMES[action.worker]
        if self._worker(action) is None:
            self.say(name, "starts")
            self.start(name)
            self.group.generation += 1

    def on_pause(self, action):
        worker = self._worker(action)
        if worker is not None:
            self.say(worker.name, "PAUSES")
            worker.is_paused = True

    def on_resume(self, action):
        worker = self._worker(action)
        if worker is not None and worker.is_paused:
            self.say(worker.name, "goes on")
            worker.is_paused = False
            worker.run()

    def on_stop(self, action):
        worker = self._worker(action)
        if worker is not None and not worker.is_paused:
            self.say(worker.name, "is told to stop")
            worker.stop()

    def on_learn(self, action):
        worker = self._worker(action)
        if worker is not None:
            worker.may_learn = True

    def on_rebalance(self, action):
        number, name = action.partition % len(self.partitions), NAMES[action.worker]
        self.group.give(number, name)
        self.say("group", f"[{number}] -> {name}, generation {self.group.generation}")

    def _worker(self, action):
        worker = self.workers.get(NAMES[action.worker])
        return None if worker is None or worker.is_dead else worker

    # Time and the broker.

    def on_advance(self, action):
        self.advance((0.05, 0.3, 0.6, 2, 5, 7, 9)[action.pick % 7])

    def advance(self, seconds):
        self.now += seconds
        for partition in self.partitions:
            if partition.foreign_until is not None and self.now >= partition.foreign_until:
                partition.resolve_foreign()
        for worker in self.live():
            worker.run()
        self.bury()

    def pass_moment(self, pick):
        """Some time passes; every partition that waits for markers gets one of them."""
        for partition in self.partitions:
            self.write_marker(partition, pick)
        self.advance(_MOMENT_S)

    def on_marker(self, action):
        self.write_marker(self._partition(action), action.pick)

    def write_marker(self, partition, pick):
        names = partition.resolving()
        if not names:
            return
        name = names[pick % len(names)]
        outcome = "commit" if partition.ids[name].outcome else "abort"
        is_last = partition.write_marker(name, pick)
        self.say(
            "broker", f"[{partition.number}] {outcome} marker", "" if is_last else "of several"
        )
        if is_last:
            check_mark(partition)

    def on_deliver(self, action):
        if self.network:
            self.deliver(action.pick % len(self.network))

    def deliver(self, index):
        what, effect = self.network.pop(index)
        try:
            effect()
        except (AgainError, ProcessorError) as error:
            self.say("network", "late:", what, "->", type(error).__name__)
        else:
            self.say("network", "late:", what)

    def on_timeout(self, action):
        if self._partition(action).time_out():
            self.say("broker", f"[{self._partition(action).number}] transaction times out")

    def on_restart(self, _action):
        """All that is in flight fails, and half of it has happened."""
        self.say("broker", "RESTARTS")
        for worker in self.live():
            for request in [it for it in worker.pending if not it.is_local]:
                if request in worker.pending:
                    was_done = self.draw(2)
                    worker.complete(request, Fate.ANSWER_LOST if was_done else Fate.LOST)
        for partition in self.partitions:
            partition.loading_until = self.now + 1.0

    def on_stale(self, action):
        if self.now >= self._stale_again_at:
            self._partition(action).stale_until = self.now + _STALE_S
            self._stale_again_at = self.now + _STALE_PAUSE_S
            self.say("broker", f"[{self._partition(action).number}] shows an old offset")

    def on_foreign(self, action):
        partition = self._partition(action)
        if partition.foreign_until is None:
            partition.open_foreign(self.now + _FOREIGN_S)
            self.say("someone", f"[{partition.number}] writes to the changelog in a transaction")

    def on_retain(self, action):
        partition = self._partition(action)
        start = needed_from(partition)
        if start > partition.records.start:
            partition.records.start = start
            self.say("log", f"[{partition.number}] now starts at {start}")

    def _partition(self, action):
        return self.partitions[action.partition % len(self.partitions)]

    # Producers of records.

    def on_append(self, action):
        number = action.partition % len(self.partitions)
        if self.scripts[number]:
            self.append(number)

    def append(self, number):
        line = self.scripts[number].pop(0)
        self.advance(line.gap_s)
        partition = self.partitions[number]
        records = partition.records
        if line.leaves_hole:
            records.append(None)
        at_ms = self.now_ms - (_STEP_BACK_MS if line.steps_back else 0)
        offset, owner = records.high_watermark, "producer" if line.is_hidden else None
        headers = () if line.record_id is None else (("record-id", line.record_id),)
        partition.append(at_ms, line.key, line.value(offset), owner, headers)
        self._hidden[number] = self._hidden.get(number, False) or line.is_hidden
        note = "(open transaction)" if line.is_hidden else ""
        self.say("log", f"[{number}] {offset} at {at_ms - _EPOCH_MS} {line.told()}", note)

    def on_reveal(self, action):
        self.reveal(action.partition % len(self.partitions), commit=action.pick % 3 > 0)

    def reveal(self, number, *, commit):
        if self._hidden.pop(number, False):
            self.partitions[number].records.resolve("producer", commit=commit)
            self.say("log", f"[{number}] transaction", "commits" if commit else "aborts")
