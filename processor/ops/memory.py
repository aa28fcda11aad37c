"""How this process keeps its memory: objects that live briefly, in fetches of megabytes.

glibc gives the top of its heap back to the kernel as soon as a few megabytes of it are free. A
fetch later each page of it is mapped and cleared anew: up to 0.33 page faults a record, half
of the worker's system time. With the bounds below there are next to none. Other C libraries are
left alone.
"""

import ctypes
import gc
from typing import Final

#: Objects made before the garbage collector looks for cycles; Python's default is 700.
_COLLECT_AFTER: Final = 50_000
# Of mallopt(3), from malloc.h.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
#: Freed memory that stays with the process: a few fetches and what they become.
_KEPT_BYTES: Final = 64 << 20
#: The most that glibc takes: what is larger is mapped by itself, and goes back at once.
_LARGEST_IN_HEAP: Final = 32 << 20


def tune_memory() -> None:
    """Collect rarely, and keep what was freed for what comes next."""
    _collect_rarely()
    _keep_freed()


def _collect_rarely() -> None:
    """A record is four tracked objects, and none of them in a cycle."""
    gc.collect()
    # What is imported by now stays for ever and need not be looked at again.
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 20)


def _keep_freed() -> None:
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_IN_HEAP)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
