"""The benchmark's command: `python benchmarks/bench.py --help`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the oracle is a test's

from benchmarks.cli import main

if __name__ == "__main__":
    main()
