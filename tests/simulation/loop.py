"""An event loop on virtual time, one for each simulated process.

It runs what is ready until nothing is, and nothing else: it waits for no socket and no clock.
A process that is paused is one whose loop isn't run; its timers fire late, as after a SIGSTOP.
"""

import asyncio
import heapq
from collections import deque
from itertools import count


class _Handle:
    """A callback that waits for its turn; half the price of asyncio's own."""

    __slots__ = ("args", "callback", "context", "is_cancelled")

    def __init__(self, callback, args, context):
        self.callback, self.args, self.context = callback, args, context
        self.is_cancelled = False

    def cancel(self):
        self.is_cancelled = True

    def cancelled(self):
        return self.is_cancelled


class VirtualLoop(asyncio.AbstractEventLoop):
    """The part of an event loop that coroutines without I/O ask for.

    Args:
        now: Tells the virtual time in seconds.
    """

    def __init__(self, now):
        self._now = now
        self._ready = deque()
        self._timers = []
        self._order = count()
        self.tasks = []
        self.faults = []

    def time(self):
        return self._now()

    def get_debug(self):
        return False

    def is_running(self):
        return True

    def is_closed(self):
        return False

    def call_soon(self, callback, *args, context=None):
        handle = _Handle(callback, args, context)
        self._ready.append(handle)
        return handle

    def call_later(self, delay, callback, *args, context=None):
        return self.call_at(self._now() + delay, callback, *args, context=context)

    def call_at(self, when, callback, *args, context=None):
        handle = _Handle(callback, args, context)
        heapq.heappush(self._timers, (when, next(self._order), handle))
        return handle

    def create_future(self):
        return asyncio.Future(loop=self)

    def create_task(self, coro, *, name=None, context=None):
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self.tasks.append(task)
        return task

    def call_exception_handler(self, context):
        self.faults.append(context)

    @property
    def next_timer_at(self):
        """When the next timer is due (seconds), ``None`` without one."""
        while self._timers and self._timers[0][2].is_cancelled:
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def run_ready(self):
        """Run all that is ready or due by now, and what follows from it."""
        if not self._ready and not self._collect_due():
            return
        asyncio._set_running_loop(self)  # noqa: SLF001 - offered to those who write loops
        try:
            while self._ready or self._collect_due():
                while self._ready:
                    handle = self._ready.popleft()
                    if handle.is_cancelled:
                        continue
                    if handle.context is None:
                        handle.callback(*handle.args)
                    else:
                        handle.context.run(handle.callback, *handle.args)
        finally:
            asyncio._set_running_loop(None)  # noqa: SLF001

    def _collect_due(self):
        now, timers = self._now(), self._timers
        while timers and timers[0][0] <= now:
            self._ready.append(heapq.heappop(timers)[2])
        return bool(self._ready)

    def drop(self):
        """Cancel every task, as an end of the process does without their knowing."""
        for task in self.tasks:
            task.cancel()
        self.run_ready()

    def failures(self, expected):
        """Return what tasks raised beside errors that somebody handles."""
        done = [task for task in self.tasks if task.done() and not task.cancelled()]
        errors = [error for task in done if (error := task.exception()) is not None]
        return [error for error in errors if not isinstance(error, expected)]


def run(coroutine):
    """Run a coroutine that waits for nothing but timers, jumping from one to the next."""
    now = 0.0
    loop = VirtualLoop(lambda: now)
    task = loop.create_task(coroutine)
    loop.run_ready()
    while not task.done():
        due = loop.next_timer_at
        if due is None:
            loop.drop()
            message = "waits for something that never comes"
            raise AssertionError(message)
        now = max(now, due)
        loop.run_ready()
    return task.result()
