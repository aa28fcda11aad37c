"""What the producers of a run say: sessions that come, pause, end and go on, in all sizes."""

import random
from collections.abc import Callable, Mapping
from typing import Final

from processor.demo.transcripts import transcripts
from tests.e2e.producing import Line

BUDGET: Final = 1_000
"""Tokens of a chunk, in quarters of characters: four times as many make a record just fit."""
IDLE_S: Final = 3.0

_SESSIONS: Final = 24
_AWAKE: Final = 6
_TURN_S: Final = 1.0
_BURST: Final = 600
_GIANT_BYTES: Final = (150_000, 450_000)
_TEXTS: Final = ("not\njson\r\n", "{cut off", "NaN", " [1] ", "\u2028 會話 \U0001f600", '"\\ud83d"')
_KEYS_OF_NO_SESSION: Final = (None, b"", b"\xff\xfe")
_Value = bytes | None


class Speech:
    """The lines of one producer; each has sessions of its own.

    Args:
        name: Begins the names of its sessions.
        seed: The same name and seed say the same at the same times.
        partitions: Of the records topic.

    Attributes:
        sessions: Keys of all sessions that it has spoken in.
    """

    def __init__(self, name: str, seed: int, *, partitions: int) -> None:
        self._rng = random.Random(f"speech {name} {seed}")  # noqa: S311 - nothing secret
        self._name, self._partitions = name, partitions
        self._makers = _makers(self._rng, seed)
        self.sessions: set[bytes] = set()

    def lines(self, at_s: float, count: int) -> list[Line]:
        """Say ``count`` things, or now and then very many at once.

        A window moves over the sessions: whoever leaves it is silent for much longer than a chunk
        may be idle, and then comes back.
        """
        if self._rng.random() < 0.01:
            return [self._line(at_s, b'{"burst":%d}' % number) for number in range(_BURST)]
        return [self._any_line(at_s) for _ in range(count)]

    def ends(self) -> list[Line]:
        """End every session that was ever spoken in."""
        return [Line(key, None) for key in sorted(self.sessions)]

    def _any_line(self, at_s: float) -> Line:
        if self._rng.random() < 0.03:
            key = self._rng.choice(_KEYS_OF_NO_SESSION)
            return Line(key, b"stray", self._rng.randrange(self._partitions))
        [make] = self._rng.choices(list(self._makers), weights=list(self._makers.values()))
        return self._line(at_s, make())

    def _line(self, at_s: float, value: _Value) -> Line:
        awake = int(at_s / _TURN_S) + self._rng.randrange(_AWAKE)
        key = f"{self._name}-{awake % _SESSIONS}".encode()
        self.sessions.add(key)
        return Line(key, value)


def _makers(rng: random.Random, seed: int) -> Mapping[Callable[[], _Value], float]:
    """Return what makes a value, and how often that one is asked."""
    real = [value for _, value in transcripts(2_000, seed, sessions=8, max_line_bytes=20_000)]

    def of_tokens(*choices: int) -> bytes:
        return b'"' + b"x" * (4 * rng.choice(choices) - 2) + b'"'

    def giant() -> bytes:
        noise = rng.randbytes(rng.randint(*_GIANT_BYTES))
        return noise if rng.random() < 0.5 else b'"' + noise.hex().encode() + b'"'

    return {
        lambda: rng.choice(real): 60,
        lambda: b"": 6,
        lambda: b"%d" % rng.randrange(10_000): 10,  # one token
        lambda: of_tokens(BUDGET, BUDGET // 2): 5,  # just what fits, by itself or with another
        lambda: of_tokens(BUDGET + 1, 4 * BUDGET): 2,
        giant: 0.4,
        lambda: rng.choice(_TEXTS).encode(): 6,  # no strict JSON
        lambda: b"\xff" + rng.randbytes(rng.randrange(200)): 4,  # no UTF-8
        lambda: None: 2,  # the end of the session
    }
