import itertools
import json
from collections import defaultdict

import pytest

from processor.demo.transcript_shapes import SHAPES
from processor.demo.transcripts import session_lines, transcripts

OVER_BUDGET_BYTES = 20_000  # 5,000 tokens at four characters each


def lines_of(shape, *, session="s-1", seed=1, count=4_000):
    return list(itertools.islice(session_lines(session, seed, shape=shape), count))


def times_of(lines):
    return [time for line in lines if (time := json.loads(line).get("timestamp"))]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_line_is_one_json_object_in_one_line(shape):
    for line in lines_of(shape):
        assert isinstance(json.loads(line), dict)
        assert b"\n" not in line
        assert b"@" not in line


@pytest.mark.parametrize("shape", SHAPES)
def test_same_seed_gives_the_same_lines_and_another_seed_others(shape):
    assert lines_of(shape, seed=1) == lines_of(shape, seed=1)
    assert lines_of(shape, seed=1) != lines_of(shape, seed=2)
    assert lines_of(shape, session="s-1") != lines_of(shape, session="s-2")


@pytest.mark.parametrize(("shape", "place"), [("pi", None), ("codex", "payload")])
def test_pi_and_codex_name_the_session_on_the_first_line_only(shape, place):
    first, *rest = lines_of(shape, session="orchard-7")
    header = json.loads(first)
    assert (header[place] if place else header)["id"] == "orchard-7"
    assert not any(b"orchard-7" in line for line in rest)


def test_claude_names_the_session_on_all_lines_but_file_history_snapshots():
    lines = [json.loads(line) for line in lines_of("claude", session="orchard-7")]
    snapshots = [line for line in lines if line["type"] == "file-history-snapshot"]
    assert snapshots
    assert not any("sessionId" in line for line in snapshots)
    named = [line for line in lines if line["type"] != "file-history-snapshot"]
    assert {line["sessionId"] for line in named} == {"orchard-7"}


def test_a_session_name_that_json_must_escape_comes_back_whole():
    header = json.loads(lines_of("pi", session='a "b" \\ é')[0])
    assert header["id"] == 'a "b" \\ é'


def test_every_tool_result_follows_its_call():
    called = set()
    for line in map(json.loads, lines_of("claude")):
        content = line.get("message", {}).get("content", [])
        for block in content if isinstance(content, list) else []:
            if block["type"] == "tool_use":
                called.add(block["id"])
            if block["type"] == "tool_result":
                assert block["tool_use_id"] in called
    assert called


def test_some_claude_lines_are_dated_before_the_line_above_and_no_codex_line_is():
    claude, codex = times_of(lines_of("claude")), times_of(lines_of("codex"))
    assert 100 < sum(later < earlier for earlier, later in itertools.pairwise(claude)) < 800
    assert codex == sorted(codex)


def test_hard_cases_of_real_transcripts_are_there():
    lines = [line for shape in SHAPES for line in lines_of(shape, count=20_000)]
    joined = b"\n".join(lines)
    for rare in ("会話", "🚀", "\u2028", "\u0085"):
        assert rare.encode() in joined
    assert b"\\ud83d" in joined
    assert b'"text":""' in joined
    assert sum(len(line) > OVER_BUDGET_BYTES for line in lines) > len(lines) / 500
    assert max(map(len, lines)) < 250_000


def test_line_sizes_are_those_of_real_transcripts():
    sizes = sorted(len(line) for _, line in transcripts(20_000, 7, sessions=256))
    capped = [size for size in sizes if size <= 8_192]
    assert 900 < sum(capped) / len(capped) < 1_150
    assert 550 < sizes[len(sizes) // 2] < 750
    assert 1_700 < sizes[len(sizes) * 9 // 10] < 2_700
    assert 15_000 < sizes[len(sizes) * 99 // 100] < 30_000


def test_interleaving_keeps_each_sessions_own_lines_in_order():
    made = defaultdict(list)
    for session, line in transcripts(3_000, 5, sessions=12):
        made[session].append(line)
    assert len(made) == 12
    for session, lines in made.items():
        candidates = [
            lines_of(shape, session=session, seed=5, count=len(lines)) for shape in SHAPES
        ]
        assert lines in candidates


def test_sessions_are_of_mixed_sizes():
    counts = defaultdict(int)
    for session, _ in transcripts(20_000, 3, sessions=50):
        counts[session] += 1
    assert max(counts.values()) > 4 * min(counts.values())


def test_lines_above_the_given_size_are_left_out():
    assert max(len(line) for _, line in transcripts(5_000, 3, max_line_bytes=8_192)) <= 8_192
    assert max(len(line) for _, line in transcripts(5_000, 3)) > 8_192
