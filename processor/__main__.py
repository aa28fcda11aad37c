"""``python -m processor``: the command line."""

import sys

from processor.cli import main

if __name__ == "__main__":
    sys.exit(main())
