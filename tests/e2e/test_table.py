"""The session table, asked from within a worker that ``faust -A`` runs."""

import json
import textwrap

import pytest

from tests.e2e.producing import Line
from tests.e2e.workers import deployments

ASKING = """
    import json

    from processor.app import create_app
    from processor.settings_loading import load_settings

    app = create_app(load_settings())


    @app.timer(interval=0.2)
    async def tell():
        sessions = app.tables["sessions"]
        if "s1" in sessions:
            state = sessions["s1"]
            told = {
                "t": state.t,
                "open": len(state.records),
                "ended": state.ended,
                "sessions": sorted(sessions),
            }
            print(f"TOLD {json.dumps(told)}", flush=True)
"""


@pytest.fixture
def app(broker, tmp_path):
    (tmp_path / "asking.py").write_text(textwrap.dedent(ASKING))
    with deployments(broker, tmp_path) as deploy:
        yield deploy(partitions=2, idle_s=0)


def told(worker):
    """Return what the table told last, ``None`` before the first time."""
    # Faust writes what is printed to its log, with a prefix.
    lines = [line for line in worker.output().splitlines() if "TOLD " in line]
    return json.loads(lines[-1].partition("TOLD ")[2]) if lines else None


def wait_until_told(app, worker, **expected):
    async def is_told():
        found = told(worker)
        return found is not None and expected.items() <= found.items()

    app.wait(f"the table tells {expected}", is_told, within_s=30)


def run_faust(app, module):
    return app.start("-m", "faust", "-A", module, "worker", "--without-web")


def test_faust_table_answers_for_a_session_in_a_running_worker(app):
    worker = run_faust(app, "asking")
    app.send([Line(b"s1", b'"one"'), Line(b"s1", b'"two"'), Line(b"s2", b'"x"')])
    wait_until_told(app, worker, t=0, open=2, ended=False, sessions=["s1", "s2"])
    app.send([Line(b"s1", b"x" * 30_000), Line(b"s1", b'"three"')])
    wait_until_told(app, worker, t=2, open=1)
    app.send([Line(b"s1", None)])
    wait_until_told(app, worker, t=3, open=0, ended=True)
    app.judged()
    assert worker.terminate() == 0


def test_table_answers_after_a_restart(app):
    first = run_faust(app, "asking")
    app.send([Line(b"s1", b"x" * 30_000), Line(b"s1", b'"open"')])
    wait_until_told(app, first, t=1, open=1)
    app.wait_until_caught_up()
    assert first.terminate() == 0
    second = run_faust(app, "asking")
    wait_until_told(app, second, t=1, open=1)


def test_worker_runs_by_the_habit_of_faust(app):
    worker = run_faust(app, "processor.app")
    app.send([Line(b"s1", b'"one"'), Line(b"s1", None)])
    verdict = app.judged()
    assert (verdict.chunks, verdict.open) == (1, 0)
    assert worker.terminate() == 0
