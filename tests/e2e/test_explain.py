import json

from tests.e2e.histories import PARTITIONS, run_history, send
from tests.e2e.verbs import run_verb


def test_session_and_chunk_are_explained_from_the_topics(settings):
    run_history(settings)
    done = run_verb(settings, "explain", "s1-1", "--output", "json")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    chunks = [row for row in rows if "t" in row]
    assert [it["t"] for it in chunks] == list(range(1, len(chunks) + 1))
    assert {it["partition"] for it in rows} == {1}

    for t in (1, 2, len(chunks)):
        done = run_verb(settings, "explain", "s1-1", str(t), "--output", "json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        sums = [it["running_tokens"] for it in found["records"]]
        assert sums[-1:] in ([found["token_count"]], [])
        why = found["closed_by"]
        assert why["message"] is not None or why["closer"] == "itself"
        assert why["unit"] is None or why["excess"] > 0
    assert "x" * 9 not in done.stdout
    done = run_verb(settings, "explain", "s1-1", "1")
    assert "  closed: " in done.stdout
    assert "\x1b" not in done.stdout, "colours are for a terminal"


def test_session_without_a_chunk_shows_what_is_open(settings):
    rows = [(partition, b"same", b"x", ()) for partition in range(PARTITIONS)]
    send(settings, settings.records_topic, rows)
    done = run_verb(settings, "explain", "same")
    assert done.returncode == 0, done.stderr
    assert "1 records in no chunk yet" in done.stdout
    done = run_verb(settings, "explain", "nobody")
    assert done.returncode == 1
    assert "session 'nobody' has no chunk" in done.stderr
