import os
import platform
import subprocess
import sys

import pytest

#: A worker in small: fetches of megabytes, taken apart and let go.
FETCHES = """
import resource

from processor.ops.memory import tune_memory

tune_memory()


def play():
    for _ in range(20):
        fetch = bytes(bytearray(6 << 20))
        [fetch[at : at + 1000] for at in range(0, len(fetch), 1000)]


play()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
play()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="mallopt is glibc's")
def test_memory_of_a_fetch_serves_the_next_one():
    """Else each page of it is mapped and cleared anew: here 4,576 times."""
    ran = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", FETCHES],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert int(ran.stdout) < 500
