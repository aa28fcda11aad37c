"""Two judges that share no code: the tests' oracle, and ``processor verify`` as users run it."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from tests.e2e.log_reading import read_log
from tests.e2e.oracle import judge
from tests.e2e.verdict import Verdict
from tests.e2e.workers import Deployment

_VERIFY: Final = (sys.executable, "-m", "processor", "verify", "--recompute")
_PATIENCE_S: Final = 60.0
_VERIFIED_WITHIN_S: Final = 300.0


@dataclass(frozen=True)
class Judgement:
    """What both say, once nobody writes any more."""

    verdict: Verdict
    proof: str
    """What ``processor verify`` printed."""
    is_proven: bool
    """Whether it exited 0."""
    closed: Counter[str] = field(default_factory=Counter)
    """Chunks by why they were closed: what the run has put to the test."""

    @property
    def is_recomputed(self) -> bool:
        """Whether each of the chunks came out again to the byte; exit 0 leaves that open."""
        return self.proof.endswith(f", {self.closed.total():,} recomputed, 0 different")

    @property
    def ok(self) -> bool:
        return self.verdict.ok and self.is_proven and self.is_recomputed


async def judged(app: Deployment, *, max_tokens: int) -> Judgement:
    """Read the topics to their ends and let both judge.

    Raises:
        TimeoutError: An end was not reached, mostly because a transaction hangs.
    """
    dead_letters = app.topics.dead_letter_topic
    verdict = await judge(
        app.bootstrap, app.records, app.chunks, dead_letters, max_tokens=max_tokens
    )
    done = await asyncio.to_thread(
        subprocess.run,
        [*_VERIFY, "--app-id", app.topics.app_id],
        env=app.environment(),
        cwd=app.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_VERIFIED_WITHIN_S,
        check=False,
    )
    chunks = await read_log(app.bootstrap, app.chunks, settled=True, patience_s=_PATIENCE_S)
    closed = Counter(_why_closed(message.value or b"{}") for message in chunks)
    return Judgement(verdict, done.stdout.strip(), done.returncode == 0, closed)


def _why_closed(chunk: bytes) -> str:
    said = json.loads(chunk)
    return f"{said.get('flush')}{' by the clock' if said.get('clock') else ''}"
