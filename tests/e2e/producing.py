"""Writes records as producers do: idempotently, keyed, several at once, steadily or in one go."""

import asyncio
import threading
import time
import zlib
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiokafka import AIOKafkaProducer
from more_itertools import chunked

LARGEST_REQUEST = 16 << 20
LARGEST_TURN = 200


class Line(NamedTuple):
    """One message for ``records``; a value of ``None`` ends the session."""

    key: bytes | None
    value: bytes | None
    partition: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None


def lines_of(pairs):
    """Turn pairs of session and value into lines."""
    return [Line(session.encode(), value) for session, value in pairs]


def ends_of(lines):
    """Return an end for each session of ``lines``."""
    return [Line(key, None) for key in dict.fromkeys(line.key for line in lines)]


@asynccontextmanager
async def producer(bootstrap, **how):
    client = AIOKafkaProducer(
        bootstrap_servers=bootstrap, max_request_size=LARGEST_REQUEST, linger_ms=2, **how
    )
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


def send(bootstrap, topic, lines, *, producers=1, **how):
    """Send all lines at once and wait until each is acknowledged.

    With several producers, each has sessions of its own, as keys would have it; how they
    interleave in the log is up to chance. ``how`` is aiokafka's.
    """
    shares = [[] for _ in range(producers)]
    for line in lines:
        shares[zlib.crc32(line.key or b"") % producers].append(line)

    async def send_all():
        await asyncio.gather(*(_send_share(bootstrap, topic, share, how) for share in shares))

    asyncio.run(send_all())


async def _send_share(bootstrap, topic, lines, how):
    async with producer(bootstrap, enable_idempotence=True, **how) as client:
        for turn in chunked(lines, LARGEST_TURN):
            await _send_turn(client, topic, turn)


async def _send_turn(client, topic, lines):
    sent = [
        await client.send(
            topic, line.value, line.key, line.partition, line.timestamp_ms, list(line.headers)
        )
        for line in lines
    ]
    await asyncio.gather(*sent)


class Flow:
    """Lines that a thread sends at a steady pace while the test does something else.

    Leaving the ``with`` block sends the rest; leaving it by an exception drops them.
    """

    def __init__(self, bootstrap, topic, lines, *, per_s):
        self._bootstrap, self._topic, self._lines, self._per_s = bootstrap, topic, lines, per_s
        self._thread = threading.Thread(target=self._run, name="flow")
        self._is_dropped = False
        self._error = None
        self.sent = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, kind, *_):
        self._is_dropped = kind is not None
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    def wait_for(self, share):
        """Return once this share of the lines has been acknowledged."""
        while self.sent < share * len(self._lines):
            if not self._thread.is_alive():
                msg = f"the flow ended after {self.sent} lines"
                raise RuntimeError(msg) from self._error
            time.sleep(0.02)

    def _run(self):
        try:
            asyncio.run(self._send())
        except Exception as error:  # noqa: BLE001 - handed to the test's thread
            self._error = error

    async def _send(self):
        clock, turn = asyncio.get_running_loop().time, max(1, self._per_s // 50)
        async with producer(self._bootstrap, enable_idempotence=True) as client:
            started_at = clock()
            for lines in chunked(self._lines, turn):
                if self._is_dropped:
                    return
                await asyncio.sleep(started_at + self.sent / self._per_s - clock())
                await _send_turn(client, self._topic, lines)
                self.sent += len(lines)
