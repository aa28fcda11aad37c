"""Valid bytes, damaged; and the bounds that reading any bytes must keep."""

import resource
import signal
from contextlib import contextmanager

from hypothesis import strategies as st

#: CPU seconds and megabytes that no input of a few kilobytes may take.
MAX_CPU_S = 10.0
MAX_GROWTH_MB = 256
#: Ends and beginnings of many encodings, and what their lengths and numbers go over at.
ODD = (
    b"\x00",
    b"\x7f",
    b"\x80",
    b"\xff" * 8,
    b"\xed\xa0\xbd",
    b"\xc2\x85\xe2\x80\xa8",
    b'"',
    b"\\ud83d",
    b"NaN",
    b"-1",
    b"1e999",
    b"9" * 5000,
    b"[" * 2000,
    b'{"a":' * 2000,
    b"null",
    b"true",
    b'""',
    b"[]",
    b"{}",
)

pieces = st.one_of(st.sampled_from(ODD), st.binary(max_size=8))


@st.composite
def damaged(draw, samples):
    """One of ``samples`` after up to four mishaps; now and then nothing but noise."""
    data = bytearray(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(0, 4))):
        at, end = sorted(draw(st.lists(st.integers(0, len(data)), min_size=2, max_size=2)))
        match draw(st.sampled_from(["flip", "cut", "drop", "repeat", "insert", "put", "splice"])):
            case "flip" if data:
                data[min(at, len(data) - 1)] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del data[at:]
            case "drop":
                del data[at:end]
            case "repeat":
                data[end:end] = data[at:end]
            case "insert":
                data[at:at] = draw(pieces)
            case "put":
                data[at:end] = draw(pieces)
            case _:
                data[at:] = draw(st.sampled_from(samples))[at:]
    return bytes(data)


@contextmanager
def bounded():
    """Fail a reading that hangs, or that takes memory out of proportion."""

    def give_up(*_):
        message = f"no end after {MAX_CPU_S:g} s of CPU"
        raise AssertionError(message)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    handler = signal.signal(signal.SIGVTALRM, give_up)
    signal.setitimer(signal.ITIMER_VIRTUAL, MAX_CPU_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, handler)
    growth_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert growth_mb < MAX_GROWTH_MB
