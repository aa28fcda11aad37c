import json

from tests.e2e.histories import PARTITIONS, run_history
from tests.e2e.verbs import run_verb
from tests.history import POLICY


def test_chunks_of_the_topic_are_cut_by_another_rule(settings):
    run_history(settings)
    same = run_verb(settings, "rechunk", "--max-tokens", str(POLICY.max_tokens))
    assert same.returncode == 0, same.stderr
    assert same.stdout.startswith("chunks: "), "the same rule moves nothing"

    done = run_verb(settings, "rechunk", "--max-tokens", "30", "--output", "json")
    assert done.returncode == 0, done.stderr
    *changes, sums = map(json.loads, done.stdout.splitlines())
    assert {it["partition"] for it in changes} == set(range(PARTITIONS))
    assert sums["new"]["chunk_count"] < sums["old"]["chunk_count"]
    assert sums["new"]["record_count"] == sums["old"]["record_count"] > 0

    one = run_verb(settings, "rechunk", "--max-tokens", "30", "--session", "s1-1")
    assert {line.split()[1] for line in one.stdout.splitlines() if line[0] in "+-"} == {"s1-1"}
