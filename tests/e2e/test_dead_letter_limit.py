"""A producer that forgot the key stops the worker, before it drains the topic."""

from tests.e2e.producing import Line

KEYLESS = [Line(None, b"keyless %d" % number, 0) for number in range(300)]
OFF = {"max_dead_letter_ratio": 1, "max_consecutive_dead_letters": 0}


def test_worker_stops_at_the_limit_and_again_until_it_is_told_to_go_on(deploy):
    app = deploy(partitions=2, idle_s=0, max_consecutive_dead_letters=100)
    good = [Line(b"s%d" % (number % 9), b"[%d]" % number, 1) for number in range(50)]
    app.send([*good, *KEYLESS[:30]])
    worker = app.start()
    app.wait_until_caught_up()
    app.send(KEYLESS[30:])
    for _ in range(2):
        assert worker.exit_code(within_s=60) == 70
        said = worker.output().splitlines()[-1]
        assert f"{app.records}[0]@" in said
        assert "no-key" in said
        assert "PROCESSOR_MAX_CONSECUTIVE_DEAD_LETTERS=0" in said
        assert 30 <= len(app.read(app.topics.dead_letter_topic)) <= 100
        worker = app.start()
    assert worker.exit_code(within_s=60) == 70

    app.start(**OFF)
    app.send(
        [*KEYLESS[:40], Line(b"later", b"1", 0), *[Line(b"s%d" % n, None, 1) for n in range(9)]]
    )
    verdict = app.judged()
    assert (verdict.dead_letters, verdict.records) == (340, 51)
