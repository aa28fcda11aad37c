import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from processor.cli.completion import completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_asks_processor_itself(shell):
    done = CliRunner().invoke(completion, [shell])
    assert done.exit_code == 0, done.output
    assert f"_PROCESSOR_COMPLETE={shell}_complete" in done.stdout


def completed(*words):
    """Return what a shell is told to offer for the last of words."""
    done = subprocess.run(
        [sys.executable, "-m", "processor"],
        env=os.environ
        | {
            "_PROCESSOR_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("processor", *words)),
            "COMP_CWORD": str(len(words)),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_verbs_and_flags_are_offered():
    assert completed("do") == ["doctor"]
    assert completed("doctor", "--sam") == ["--sample"]
