"""``python -m tests.simulation HISTORIES SEED``: more histories than the tests have time for."""

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from os import cpu_count

from tests.simulation.playing import explained, first_failure

_SHARE = 250


def main(histories=10_000, seed=0):
    """Play histories on all cores and return the exit code."""
    started_at = time.monotonic()
    end = seed + histories
    shares = [range(first, min(first + _SHARE, end)) for first in range(seed, end, _SHARE)]
    done = 0
    with ProcessPoolExecutor(cpu_count()) as pool:
        for share, failed in zip(shares, pool.map(first_failure, shares), strict=True):
            done += len(share)
            if failed is not None:
                pool.shutdown(wait=False, cancel_futures=True)
                sys.stdout.write(explained(failed))
                sys.stdout.write(f"\nmake simulate HISTORIES=1 SEED={failed} tells it again\n")
                return 1
            took_s = time.monotonic() - started_at
            sys.stdout.write(f"\r{done} of {histories} histories, {done / took_s:.0f} a second")
            sys.stdout.flush()
    sys.stdout.write("; no promise broken\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
