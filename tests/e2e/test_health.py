"""Health, metrics and status page of real workers, through all that may come to them."""

import asyncio
import re

import pytest

from processor.demo.transcripts import transcripts
from tests import browser
from tests.e2e.faulty import start_faulty
from tests.e2e.probing import Probed
from tests.e2e.producing import Line, ends_of, lines_of
from tests.e2e.workers import deployments
from tests.queries import unanswered


def some_lines(count, seed, **how):
    return lines_of(transcripts(count, seed, **({"sessions": 20, "max_line_bytes": 8_000} | how)))


def test_worker_is_alive_first_then_ready_and_at_its_end_neither(deploy):
    app = deploy()
    it = Probed(app)
    it.wait_until_live()
    assert it.ask("readyz")[0] == 503
    it.wait_until_ready()
    assert it.problems("readyz") == []
    assert it.metrics()["processor_ready"] == 1
    assert it.worker.terminate() == 0
    assert it.ask("livez") == (None, "")


@pytest.mark.needs("eviction")
def test_rebalance_is_healthy(deploy):
    app = deploy(session_timeout_s=6)
    first, frozen = Probed(app), Probed(app)
    app.wait_for_members(2)
    first.wait_until_ready()
    frozen.worker.freeze()  # so that the next rebalance waits for it, and can be looked at
    last = Probed(app)
    first.wait_until_not_ready()
    first.wait_until_ready()
    last.wait_until_ready()
    for it in (first, last):
        metrics = it.metrics()
        assert metrics["processor_assigned_partitions"] == 2
        assert metrics["processor_rebalances_total"] >= 1
        assert metrics["processor_rebalance_duration_seconds"] >= 1


def test_worker_that_the_group_gives_nothing_is_ready(deploy):
    app = deploy(partitions=1)
    workers = [Probed(app), Probed(app)]
    app.wait_for_members(2)
    for it in workers:
        it.wait_until_ready()
    assert sorted(it.metrics()["processor_assigned_partitions"] for it in workers) == [0, 1]


def test_broker_that_is_killed_leaves_a_worker_alive_and_not_ready(own_jvm_broker, tmp_path):
    with deployments(own_jvm_broker, tmp_path) as deploy:
        it = Probed(deploy())
        it.wait_until_ready()
        own_jvm_broker.kill()
        it.wait_until_not_ready()
        assert "no broker has answered for" in it.problems("readyz")[0]
        assert it.metrics()["processor_ready"] == 0
        own_jvm_broker.start()
        it.wait_until_ready(within_s=120)


def test_broker_that_is_frozen_leaves_a_worker_alive_and_not_ready(own_jvm_broker, tmp_path):
    with deployments(own_jvm_broker, tmp_path) as deploy:
        app = deploy(stuck_after_s=2)
        it = Probed(app)
        it.wait_until_ready()
        with app.flow(some_lines(2_000, 61), per_s=200) as flow:
            flow.wait_for(0.3)
            own_jvm_broker.freeze()
            it.wait_until_not_ready()
            own_jvm_broker.thaw()
            it.wait_until_ready(within_s=120)
        assert app.judged(within_s=90).records == 2_000


def test_partition_that_is_stuck_is_not_alive(deploy):
    """Should the process ever not end by itself, a probe must see it."""
    app = deploy(partitions=2, stuck_after_s=2)
    fault = "stacks.exit_stuck = lambda *_, **__: None; Partitions.feed = hang"
    it = Probed(app, lambda **settings: start_faulty(app, fault, **settings))
    it.wait_until_ready()
    app.send(some_lines(200, 62))

    async def is_not_live():
        return it.ask("livez")[0] == 503

    app.wait("/livez 503", is_not_live, within_s=30)
    assert "stuck at offset 0" in it.problems("livez")[0]
    assert app.run("health", http_port=it.port).returncode == 1
    it.worker.kill()


@pytest.fixture
def ran(deploy):
    """A worker that has chunked all there was, its deployment and the oracle's verdict."""
    app = deploy(idle_s=0, stuck_after_s=2)
    it = Probed(app)
    it.wait_until_ready()
    lines = some_lines(3_000, 63, sessions=40, max_line_bytes=30_000)
    app.send(lines)
    app.send(ends_of(lines)[:10])
    app.send([Line(None, b"without a key", 0), Line(b"\xff", b"not UTF-8", 1)])
    return it, app, app.judged()


def test_metrics_are_what_the_oracle_counts(ran):
    it, app, verdict = ran

    async def is_counted():
        return it.metrics()["processor_consumer_lag_records"] == 0

    app.wait("no lag", is_counted, within_s=10)
    metrics = it.metrics()
    assert metrics["processor_records_total"] == verdict.records
    assert metrics["processor_chunks_total"] == verdict.chunks
    assert metrics["processor_chunk_tokens"] == verdict.chunks
    assert metrics["processor_records_per_chunk"] == verdict.chunks
    assert metrics["processor_dead_letters_total"] == verdict.dead_letters == 2
    assert metrics["processor_sessions"] == verdict.sessions
    assert metrics["processor_open_records"] == verdict.open > 0
    assert metrics["processor_unaccounted_records"] == 0
    assert metrics["processor_consumer_lag_seconds"] == 0
    assert metrics["processor_transactions_total"] > 0
    assert metrics["processor_chunk_latency_seconds"] > 0


def test_dashboard_and_alerts_find_their_series(ran):
    it, *_ = ran
    assert unanswered(it.ask("metrics")[1]) == []


def test_status_tells_of_sessions_and_never_of_what_records_hold(ran):
    it, app, verdict = ran
    status = it.status()
    assert [part["partition"] for part in status["partitions"]] == [0, 1, 2, 3]
    assert sum(status["fill"]["sessions"]) == it.metrics()["processor_open_sessions"]
    assert {chunk["flush"] for chunk in status["chunks"]} <= set(status["counts"]["chunks"])
    assert sum(status["counts"]["chunks"].values()) == verdict.chunks
    letters = {"no-key": 1, "key-not-utf8": 1, "format": 0, "too-large": 0}
    assert status["counts"]["dead_letters"] == letters
    # Names of fields may stand in records too.
    text = re.sub(r'"\w+":', "", it.ask("status.json")[1])
    records = app.read(app.records)
    words = {word for it in records if it.value for word in re.findall(rb"\w{10,}", it.value)}
    words = {word.decode() for word in words if not any(word in (it.key or b"") for it in records)}
    assert words
    assert not [word for word in words if word in text]
    assert "without a key" not in text
    assert app.topics.records_topic in text


@browser.needed
def test_page_of_a_worker_shows_it_and_says_loudly_when_it_is_gone(ran, tmp_path):
    it, app, _ = ran

    async def look(address):
        async with browser.opened(address, it.url) as tab:
            await tab.wait_for("document.querySelectorAll('#chunks tbody tr').length === 20")
            assert await tab.text("#verdict strong") == "✓ Keeping up"
            assert tab.errors == []
            await asyncio.to_thread(app.kill, it.worker)
            await tab.wait_for("document.title.includes('Stopped answering')")

    with browser.running(tmp_path / "chromium") as address:
        asyncio.run(look(address))


def test_two_workers_with_the_default_port_both_start(deploy):
    app = deploy(partitions=2, http_port="")
    workers = [app.start(log_format="json"), app.start(log_format="json")]
    app.wait_for_members(2)
    urls = [re.search(r'"url": "(\S+)"', worker.output())[1] for worker in workers]
    assert len(set(urls)) == 2


def test_two_workers_with_one_port_set_do_not(deploy):
    app = deploy(partitions=2)
    first = Probed(app)
    first.wait_until_live()
    second = app.start(http_port=first.port)
    assert second.exit_code(within_s=30) == 78
    assert f"PROCESSOR_HTTP_PORT={first.port}" in second.output().splitlines()[-1]


def test_verb_says_in_a_line_how_a_worker_is(deploy):
    app = deploy(partitions=1)
    it = Probed(app)
    it.wait_until_ready()
    for arguments, said in ((("health",), "live\n"), (("health", "--ready"), "ready\n")):
        ended = app.run(*arguments, http_port=it.port)
        assert (ended.returncode, ended.stdout) == (0, said)
    app.kill(it.worker)
    ended = app.run("health", http_port=it.port)
    assert (ended.returncode, ended.stdout) == (69, "")
    assert "no worker answers at 127.0.0.1" in ended.stderr
