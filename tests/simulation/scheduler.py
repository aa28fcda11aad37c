"""Who runs next, and what becomes of each request: a simulated process and its requests.

Whatever a process asks of the world is a request that waits until an action of the history
completes it. The request takes effect at that moment, or not, or later, and the answer comes or
doesn't. So every order of effects, and a crash or a pause between any two, is a matter of which
actions a history has, in which order.
"""

import asyncio
from enum import Enum

from processor.core.errors import ProcessorError, UnreachableError
from processor.protocol.port import ResentCommitError
from tests.simulation.broker import AgainError
from tests.simulation.loop import VirtualLoop


class Fate(Enum):
    """What becomes of one request."""

    DONE = "done"
    LOST = "never arrived"
    ANSWER_LOST = "done, answer lost"
    LATE = "still on its way, given up"
    SILENT = "still on its way, no answer"
    RESENT = "done, and sent once more"


class Request:
    """One thing asked of the world.

    Attributes:
        name: For the trace.
        effect: Does it and returns the answer.
        is_ready: Whether it can be answered now.
        is_local: Nothing of it crosses the network: it can't be lost.
        is_write: Once given up it may still arrive.
        is_bounded: Its caller gives up by itself when no answer comes.
        is_commit: The client sends it again by itself.
    """

    __slots__ = (
        "effect",
        "future",
        "is_bounded",
        "is_commit",
        "is_local",
        "is_ready",
        "is_write",
        "name",
    )

    def __init__(self, name, effect, future):
        self.name, self.effect, self.future = name, effect, future
        self.is_ready = None
        self.is_local = self.is_write = self.is_bounded = self.is_commit = False

    def possible(self, fate):
        """Return ``fate``, or the nearest to it that such a request can meet."""
        if self.is_local or (fate is Fate.RESENT and not self.is_commit):
            return Fate.DONE
        if fate is Fate.SILENT and not self.is_bounded:
            return Fate.LOST
        if fate is Fate.LATE and not self.is_write:
            return Fate.LOST
        return fate


class Process:
    """A process that may be paused and killed; see ``worker.py`` for what it runs.

    Attributes:
        name: In traces, and the member's name in the group.
        pending: Requests that nothing has completed yet, in the order of asking.
    """

    def __init__(self, name, world):
        self.name = name
        self.world = world
        self.loop = VirtualLoop(lambda: world.now)
        self.pending = []
        self.is_paused = self.is_dead = False

    async def ask(self, name, effect, **traits):
        """Ask the world for something and wait for the answer."""
        if self.is_dead:
            raise asyncio.CancelledError
        request = Request(name, effect, self.loop.create_future())
        for trait, value in traits.items():
            setattr(request, trait, value)
        self.pending.append(request)
        try:
            return await request.future
        except asyncio.CancelledError:
            self._give_up(request)
            raise

    def ready(self):
        """Return the requests that can be completed now."""
        return [it for it in self.pending if it.is_ready is None or it.is_ready()]

    def complete(self, request, fate):
        """Let ``request`` meet its fate and run what follows from the answer."""
        fate = request.possible(fate)
        self.pending.remove(request)
        future = request.future
        if fate in (Fate.LATE, Fate.SILENT):
            self.world.send_late(self.name, request)
        if fate in (Fate.DONE, Fate.ANSWER_LOST, Fate.RESENT):
            self._apply(request, fate)
        if fate is Fate.RESENT:
            self.world.send_late(self.name, request)
        if fate is Fate.SILENT:
            self.world.say(self.name, request.name, fate.value)
        elif not future.done():
            if fate is not Fate.DONE:
                self.world.say(self.name, request.name, fate.value)
            future.set_exception(
                ResentCommitError("the commit was sent twice")
                if fate is Fate.RESENT
                else UnreachableError(f"{request.name}: {fate.value}")
            )
        self.run()

    def run(self):
        if not self.is_paused and not self.is_dead:
            self.loop.run_ready()

    def drop(self):
        """End without a word; what was sent may still arrive."""
        for request in self.pending:
            if request.is_write:
                self.world.send_late(self.name, request)
        self.pending = []
        self.is_dead = True
        self.loop.drop()

    def _apply(self, request, fate):
        try:
            answer = request.effect()
        except (AgainError, ProcessorError) as error:
            self.world.say(self.name, request.name, "->", type(error).__name__)
            if fate is Fate.DONE and not request.future.done():
                request.future.set_exception(error)
        else:
            if fate is Fate.DONE and not request.future.done():
                if not request.is_local:
                    self.world.say(self.name, request.name, _told(answer))
                request.future.set_result(answer)

    def _give_up(self, request):
        if request in self.pending:
            self.pending.remove(request)
            if request.is_write and not self.is_dead:
                self.world.send_late(self.name, request)


def _told(answer):
    """Return an answer as a trace gives it; of a piece of the changelog only how much it is."""
    if isinstance(answer, tuple) and isinstance(answer[0], list):
        return f"-> {len(answer[0])} entries, up to {answer[1]}"
    return "" if answer is None else f"-> {answer}"
