"""Three minutes of everything at once; ``make chaos SECONDS=… SEED=…`` plays other histories."""

import asyncio
import logging

from tests.chaos.driver import play

SECONDS = 180
SEED = 1


def test_nothing_is_lost_while_workers_network_and_broker_break(jvm_alone, tmp_path, caplog):
    # Its own producers lose the broker too.
    caplog.set_level(logging.CRITICAL, "aiokafka")
    outcome = asyncio.run(play(SECONDS, SEED, brokers=1, folder=tmp_path, say=print))
    print(outcome)  # noqa: T201 - shown by pytest when the test fails
    assert outcome.ok, str(outcome)
    # What no chunk was closed for has not been put to the test.
    reasons = {"tokens", "oversize", "idle", "idle by the clock", "end"}
    assert reasons <= set(outcome.judgement.closed)
