"""Statuses as a worker tells them, made up: ten minutes with a rebalance in the middle."""

import math
import random

from processor.core.chunks import FlushReason
from processor.protocol.partition import RECENT_CHUNKS

NOW_MS = 1_764_500_000_000
SAMPLES = 300
REBALANCED_AT = (150, 155)
SESSIONS = ("agent-7f3a9c", "0197c2d4-8b1e-7c55-a6f0-2f9e4d1b7a33", "build-bot/main")
FLUSHES = ("tokens", "tokens", "idle", "tokens", "end", "oversize", "tokens", "bytes")
FINE = {"ok": True, "problems": []}


def keeping_up():
    """A busy worker that had a rebalance five minutes ago and made up for it."""
    rng = random.Random(3)  # noqa: S311 - nothing secret
    return {
        "at_ms": NOW_MS,
        "started_at_ms": NOW_MS - 3 * 86_400_000,
        "host": "worker-0",
        "group": "memory",
        "topics": {"input": "records", "output": "chunks"},
        "policy": {"idle_s": 300.0, "max_age_s": 0.0},
        "live": FINE,
        "ready": FINE,
        "partitions": [_partition(number) for number in range(4)],
        "history": _history(rng),
        "fill": {"max_tokens": 5000, "sessions": [120, 96, 88, 101, 75, 77, 60, 72, 81, 54]},
        "chunks": [_chunk(number, rng) for number in range(RECENT_CHUNKS)],
        "counts": {
            "records": {"value": 123_456_789, "text": 3, "base64": 0},
            "chunks": {
                **dict.fromkeys(FlushReason, 0),
                "idle": 1203,
                "end": 431,
                "bytes": 2,
                "tokens": 98_331,
                "oversize": 77,
            },
            "dead_letters": dict.fromkeys(("no-key", "key-not-utf8", "format", "too-large"), 0),
            "transactions": {"committed": 88_231, "failed": 0},
            "rebalances": 3,
        },
    }


def behind():
    """One that reads a backlog, and has set records aside."""
    status = keeping_up()
    lags = status["history"]["lag_records"]
    lags[200:] = [50_000 + 900 * left for left in range(100, 0, -1)]
    for it in status["partitions"]:
        it.update(state="catching up", lag_records=12_600, lag_s=3900.0)
    status["counts"]["dead_letters"] = {"no-key": 17, "key-not-utf8": 2}
    status["counts"]["transactions"]["failed"] = 3
    return status


def not_ready():
    """One whose brokers are away."""
    problem = {"what": "no broker has answered for 42 s", "remedy": "check brokers and network"}
    status = keeping_up() | {"ready": {"ok": False, "problems": [problem]}}
    status["partitions"][2] |= {"state": "opening", **dict.fromkeys(("position", "lag_s"), None)}
    return status


def stuck():
    """One that hangs."""
    problem = {"what": "records[0]: stuck at offset 7 for 120 s", "remedy": "start it again"}
    return keeping_up() | {"live": {"ok": False, "problems": [problem]}}


def standing_by():
    """One that the group gave nothing."""
    return keeping_up() | {"partitions": [], "chunks": []}


def _partition(number):
    return {
        "partition": number,
        "state": "ready",
        "position": 1_234_567 + 999 * number,
        "stable_end": 1_234_567 + 1000 * number,
        "lag_records": number,
        "lag_s": 0.1 * number,
        "progressed_at_ms": NOW_MS - 300,
        "session_count": 12_000 + 321 * number,
        "open_session_count": 230 + 7 * number,
        "open_record_count": 4000,
        "unaccounted_record_count": 0,
        "oldest_open_s": 280.0,
        "overdue_s": 0.0,
        "staged_bytes": 0,
    }


def _chunk(number, rng):
    flush = FLUSHES[number % len(FLUSHES)]
    return {
        "committed_at_ms": NOW_MS - 300 * number**2,
        "partition": number % 4,
        "session": SESSIONS[number % len(SESSIONS)],
        "t": 3 * number + 1,
        "record_count": rng.randint(1, 80),
        "token_count": rng.randint(3800, 5000),
        "flush": flush,
        "clock": flush == "idle",
    }


def _history(rng):
    rates = [1500 + 600 * math.sin(i / 25) + rng.gauss(0, 120) for i in range(SAMPLES)]
    lags = [max(0, round(rng.gauss(40, 50))) for _ in range(SAMPLES)]
    medians = [0.13 + abs(rng.gauss(0, 0.02)) for _ in range(SAMPLES)]
    for i in range(150, 160):
        rates[i], lags[i], medians[i] = 0, (i - 149) * 3000, None
    for i in range(160, 190):
        rates[i], lags[i], medians[i] = 4000, (190 - i) * 1000, 0.2 + (190 - i) / 5
    return {
        "interval_s": 2.0,
        "at_ms": [NOW_MS - 2000 * (SAMPLES - 1 - i) for i in range(SAMPLES)],
        "records_per_s": rates,
        "chunks_per_s": [it / 22 for it in rates],
        "latency_p50_s": medians,
        "latency_p99_s": [it and it * 2 for it in medians],
        "lag_records": lags,
        "rebalances": [int(i in REBALANCED_AT) for i in range(SAMPLES)],
    }
