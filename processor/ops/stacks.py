"""Where each task and thread of a process stands: when it is asked, or hangs and has to end."""

import asyncio
import faulthandler
import gc
import os
import threading
import traceback
from collections.abc import Iterator
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType
from typing import Final, NoReturn

#: sysexits.h's EX_SOFTWARE, as for a state fault.
_EXIT_CODE: Final = 70
_STDERR: Final = 2
#: Whoever reads our stderr may be what hangs.
_LAST_WORDS_S: Final = 5.0
_AWAITING: Final = (CoroutineType, AsyncGeneratorType, GeneratorType)
#: Around a coroutine's ``__await__`` and a generator's step; only the collector sees into them.
_WRAPPERS: Final = {"coroutine_wrapper", "async_generator_asend"}


def exit_stuck(message: str, loop: asyncio.AbstractEventLoop) -> NoReturn:
    """Write the stacks of all tasks and threads and ``message`` to stderr, and exit 70 at once.

    Nothing is tidied up, since that could hang as well; what is not committed is replayed. Works
    from any thread.
    """
    timer = threading.Timer(_LAST_WORDS_S, os._exit, (_EXIT_CODE,))
    timer.daemon = True
    timer.start()
    try:
        write_stacks(loop)
        os.write(_STDERR, f"processor: {message}\n".encode())
    finally:
        os._exit(_EXIT_CODE)


def write_stacks(loop: asyncio.AbstractEventLoop) -> None:
    """Write the stacks of all tasks and threads to stderr: where each stands, and no values."""
    # Straight to the file: the log's lock may be held by who hangs.
    os.write(_STDERR, task_stacks(loop).encode())
    faulthandler.dump_traceback(_STDERR)


def task_stacks(loop: asyncio.AbstractEventLoop) -> str:
    """Return where each unfinished task of ``loop`` stands, from its outermost await inward."""
    texts = []
    for task in asyncio.all_tasks(loop):
        frames = [(it, it.f_lineno) for it in _awaited(task.get_coro())]
        lines = traceback.StackSummary.extract(iter(frames)).format()
        texts.append(f"Task {task.get_name()}:\n{''.join(lines)}")
    return "\n".join(texts)


def _awaited(awaitable: object) -> Iterator[FrameType]:
    """Yield the frames down the chain of awaits; ``Task.get_stack`` stops at the first."""
    while True:
        if type(awaitable).__name__ in _WRAPPERS:
            inner = (it for it in gc.get_referents(awaitable) if isinstance(it, _AWAITING))
            awaitable = next(inner, None)
        if isinstance(awaitable, CoroutineType):
            frame, awaitable = awaitable.cr_frame, awaitable.cr_await
        elif isinstance(awaitable, AsyncGeneratorType):
            frame, awaitable = awaitable.ag_frame, awaitable.ag_await
        elif isinstance(awaitable, GeneratorType):
            frame, awaitable = awaitable.gi_frame, awaitable.gi_yieldfrom
        else:
            return
        # Gone when it has just ended: another thread may be asking.
        if frame is not None:
            yield frame
