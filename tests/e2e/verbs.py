"""Runs a verb of the command line against the topics of a test."""

import os
import subprocess
import sys


def run_verb(settings, *args, stdin="", **environment):
    """Run a verb to its end.

    What goes in and comes out is text, or bytes where ``stdin`` is. ``environment`` has what it is
    told besides broker and topics.
    """
    return subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "processor", *args],
        input=stdin,
        capture_output=True,
        text=isinstance(stdin, str),
        check=False,
        timeout=120,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "KAFKA_BOOTSTRAP_SERVERS": settings.bootstrap_servers,
            "PROCESSOR_RECORDS_TOPIC": settings.records_topic,
            "PROCESSOR_CHUNKS_TOPIC": settings.chunks_topic,
            "PROCESSOR_DEAD_LETTER_TOPIC": settings.dead_letter_topic,
            **environment,
        },
    )
