"""Watches a group's progress while brokers come and go."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Final, TypeVar

from aiokafka.errors import KafkaError

from processor.kafka.connection import NO_ANSWER
from tests.chaos.takeovers import Sample
from tests.e2e.log_reading import end_offsets
from tests.e2e.workers import Deployment

_SAMPLE_EVERY_S: Final = 0.25
_ANSWER_WITHIN_S: Final = 3.0
_Answer = TypeVar("_Answer")


class Watch:
    """Samples the committed offsets for as long as ``sample_forever`` runs.

    They are also written to ``offsets.jsonl`` in the run's folder, by the loop's clock.

    Attributes:
        samples: In order; none while nobody answers.
    """

    def __init__(self, app: Deployment) -> None:
        self._app, self._log = app, app.folder / "offsets.jsonl"
        self.samples: list[Sample] = []

    async def sample_forever(self) -> None:
        now = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(_SAMPLE_EVERY_S)
            asked_at = now()
            offsets = await _answer(self._app.committed)
            # A coordinator that is still loading leaves partitions out; that is no answer.
            if offsets is not None and min(offsets.values()) >= 0:
                by_number = {at.partition: offset for at, offset in offsets.items()}
                self._note(Sample(asked_at, now(), by_number))

    async def lag(self) -> int | None:
        """Return how many offsets of all partitions are not processed; ``None``: no answer."""
        ends = await _answer(lambda: end_offsets(self._app.bootstrap, self._app.records))
        offsets = await _answer(self._app.committed)
        if ends is None or offsets is None:
            return None
        lag: int = sum(end - max(offsets[at], 0) for at, end in ends.items())
        return lag

    def _note(self, sample: Sample) -> None:
        self.samples.append(sample)
        with self._log.open("a") as log:
            log.write(f"{json.dumps(asdict(sample))}\n")


async def _answer(ask: Callable[[], Awaitable[_Answer]]) -> _Answer | None:
    try:
        async with asyncio.timeout(_ANSWER_WITHIN_S):
            return await ask()
    except (*NO_ANSWER, KafkaError):
        return None
