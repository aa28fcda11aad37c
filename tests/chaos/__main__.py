"""``python -m tests.chaos SECONDS SEED [BROKERS]``: break everything, then judge; see driver.py."""

import asyncio
import logging
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos.driver import play
from tests.chaos.schedule import draw


def main(seconds: int = 180, seed: int = 0, brokers: int = 1) -> int:
    """Play one run, show how it goes, and return the exit code."""
    folder = Path(tempfile.mkdtemp(prefix="processor-chaos-"))
    # However we are ended, the workers end too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Our own producers and samplers lose their brokers too; that is what the run is about.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    schedule = draw(seconds, seed, brokers=brokers)
    _say(f"make chaos SECONDS={seconds} SEED={seed} BROKERS={brokers}; logs in {folder}")
    _say("\n".join(f"  planned {fault}" for fault in schedule))
    outcome = asyncio.run(play(seconds, seed, brokers=brokers, folder=folder, say=_say))
    _say(f"\n{outcome}")
    if outcome.ok:
        shutil.rmtree(folder)
        return 0
    _say(f"logs and the brokers' data are kept in {folder}")
    return 1


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
