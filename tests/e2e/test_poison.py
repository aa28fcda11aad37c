"""Records that have stopped, bricked or emptied other tools: none of them is anything special here.

The numbered ones were reported in public; their docstrings open with what was seen.
"""

import random

import pytest

from tests.e2e.oracle import QUARTERS
from tests.e2e.poison import Given, play
from tests.e2e.producing import Line
from tests.e2e.workers import Deployment

BUDGET_CHARS = 20_000
GIVEN = Given()
NO_SESSION = [
    Line(None, b'{"no":"key"}', 0, (("empty", None),)),
    Line(b"", b'{"empty":"key"}', 1),
    Line(b"\xff\xfes", b'{"not":"UTF-8"}', 1),
]
for stray in NO_SESSION:
    GIVEN.line(*stray)


@pytest.fixture(scope="module")
def outcome(broker, tmp_path_factory):
    app = Deployment(
        broker,
        tmp_path_factory.mktemp("poison"),
        partitions=2,
        idle_s=0,
        token_counter=QUARTERS,
    )
    yield play(app, GIVEN)
    app.stop()


def test_all_records_of_sessions_are_in_chunks_and_only_the_others_are_dead_letters(outcome):
    verdict = outcome.verdict
    assert verdict.records == GIVEN.record_count + len(GIVEN.sessions())
    assert (verdict.open, verdict.dead_letters) == (0, len(NO_SESSION))
    assert sorted(letter.value for letter in outcome.dead_letters) == sorted(
        stray.value for stray in NO_SESSION
    )
    assert outcome.exit_code == 0


SEPARATORS = GIVEN.session("separators", '{"n":1}', '{"text":"a\u2028b\u0085c\u2029"}', '{"n":3}')


def test_line_separators_of_unicode_cut_no_record(outcome):
    """Symptom: a turn with U+2028 in it vanished, and its number was given to the next.

    Its line was cut by ``splitlines()``: bytedance/deer-flow#5420, volcengine/OpenViking#3984.
    """
    assert outcome.values("separators") == SEPARATORS
    assert [chunk.t for chunk in outcome.chunks["separators"]] == [1]


SURROGATE = GIVEN.session("surrogate", '{"n":1}', r'{"text":"x \ud83d y"}', '{"n":3}')


def test_half_an_emoji_is_carried_as_it_was_written(outcome):
    """Symptom: an emoji was cut in two, and the session could never be opened again.

    anthropics/claude-code#56064: the escape is read, but can't be written as UTF-8.
    """
    assert outcome.values("surrogate") == SURROGATE
    assert outcome.carriers["surrogate"][:3] == ["value", "text", "value"]


CUT = GIVEN.session("cut", '{"n":1}', '{"type":"att', '{"n":3}', '{"n":4}')


def test_line_that_was_cut_hides_nothing_behind_it(outcome):
    """Symptom: after one malformed line the rest of a transcript was taken for absent.

    anthropics/claude-code#50347, openai/codex#24425.
    """
    assert outcome.values("cut") == CUT
    assert outcome.carriers["cut"][:4] == ["value", "text", "value", "value"]


FOURFOLD = GIVEN.session("fourfold", '{"n":1}', f'"{"x" * 4 * BUDGET_CHARS}"', '{"n":3}')


def test_record_of_four_budgets_is_a_chunk_by_itself_and_says_so(outcome):
    """Symptom: an episode was accepted as "queued", dropped later as too large, and nobody told.

    getzep/graphiti#1707.
    """
    assert outcome.values("fourfold") == FOURFOLD
    assert [
        (chunk.t, chunk.flush, chunk.over_budget, len(chunk.records))
        for chunk in outcome.chunks["fourfold"]
    ] == [(1, "tokens", False, 1), (2, "oversize", True, 1), (3, "end", False, 2)]


def text_of(char, tokens, *, over=0):
    """A JSON string of as many characters as the budget counts, with the quotes."""
    return f'"{char * (4 * tokens - 2 + over)}"'


AT_THE_BUDGET = {
    char: GIVEN.session(
        f"budget-{ord(char):x}",
        text_of(char, 5_000),
        text_of(char, 5_000, over=1),
        text_of(char, 4_999),
    )
    for char in ("x", "記", "🙂")
}


@pytest.mark.parametrize("char", AT_THE_BUDGET)
def test_records_at_the_budget_and_one_token_beside_it_all_come_out(outcome, char):
    """Symptom: a turn above the token limit was logged and lost.

    NousResearch/hermes-agent#37421; in scripts of several bytes a character, too.
    """
    session = f"budget-{ord(char):x}"
    assert outcome.values(session) == AT_THE_BUDGET[char]
    found = [(chunk.token_count, chunk.over_budget) for chunk in outcome.chunks[session]]
    assert found[:3] == [(5_000, False), (5_001, True), (4_999, False)]


LONG_OUTPUT = GIVEN.session(
    "output",
    '{"n":1}',
    f'{{"type":"tool_result","content":"{random.Random(6).randbytes(600_000).hex()}"}}',  # noqa: S311
    '{"n":3}',
    compressed=True,
)


def test_tool_output_above_a_megabyte_is_carried_whole(outcome):
    """Symptom: an event above about 1 MB was dropped with all that belonged to it.

    langfuse/langfuse#1676, traceloop/openllmetry#3211. The chunk's side of it is a test of its own.
    """
    assert len(LONG_OUTPUT[1]) > 1_200_000
    assert outcome.values("output") == LONG_OUTPUT


NOW_MS = 1_764_500_000_000
CLOCK = [("call", NOW_MS), ("result", NOW_MS), ("late clock", NOW_MS - 40), ("next", NOW_MS + 1)]
for what, at_ms in CLOCK:
    GIVEN.line(b"clock", b'{"what":"%s"}' % what.encode(), timestamp_ms=at_ms)


def test_equal_and_falling_timestamps_change_no_order(outcome):
    """Symptom: a tool's result stood before its call, their times being equal or 40 ms back.

    mastra-ai/mastra#3735, NousResearch/hermes-agent#25589.
    """
    assert outcome.values("clock") == tuple(b'{"what":"%s"}' % it.encode() for it, _ in CLOCK)
    [chunk] = outcome.chunks["clock"]
    assert [record.timestamp_ms for record in chunk.records][:4] == [at_ms for _, at_ms in CLOCK]


CHILD = GIVEN.session(
    "agent-a",
    '{"id":"child","session_id":"parent"}',
    '{"type":"session_meta","payload":{"id":"parent"}}',
    '{"session_id":"somebody else"}',
)
PARENT = GIVEN.session("parent", '{"id":"parent","session_id":"parent"}')


def test_key_names_the_session_whatever_the_body_says_and_a_mismatch_is_told(outcome):
    """Symptom: a child's rollout named its parent's session, and the two overwrote each other.

    garrytan/gbrain#4981, anthropics/claude-code#15545.
    """
    assert outcome.values("agent-a") == CHILD
    assert outcome.values("parent") == PARENT
    # Once: the others are only counted.
    assert outcome.said.count("a record names another session than its key") == 1


OKS = GIVEN.session("oks", *['"ok"'] * 5)
JOINED = {name: GIVEN.session(name, value) for name, value in (("ab", "c"), ("a", "bc"))}


def test_equal_records_stay_five_and_equal_joins_stay_apart(outcome):
    """Symptom: ids made of the content let identical events collide and vanish.

    madesroches/micromegas#1462, mem0ai/mem0#160; as did hashes over parts joined without a mark.
    """
    assert outcome.values("oks") == OKS
    assert {name: outcome.values(name) for name in JOINED} == JOINED
    [one], [other] = outcome.chunks["ab"], outcome.chunks["a"]
    assert one.digest != other.digest


GIANT = GIVEN.session(
    "giant", '{"n":1}', f'{{"content":"{"all work and no play " * 600_000}"}}', compressed=True
)


def test_line_of_twelve_megabytes_that_was_compressed_below_one_is_carried_whole(outcome):
    assert len(GIANT[1]) > 12_000_000
    assert outcome.values("giant") == GIANT
    assert outcome.carriers["giant"][:2] == ["value", "value"]


DEEP = 100_000
ODD = {
    "json": ('{"a":[1,{"b":null}],"c":"é"}', "value"),
    "plain text": ("plain words, {", "text"),
    "nul": ('{"a":"\0"}', "text"),
    "escaped nul": (r'{"a":"\u0000"}', "value"),
    "nan": ('{"a":NaN}', "text"),
    "sixty deep": ("[" * 60 + "]" * 60, "value"),
    "deep lists": ("[" * DEEP + "]" * DEEP, "text"),
    "deep objects": ('{"a":' * DEEP + "1" + "}" * DEEP, "text"),
    "open lists": ("[" * DEEP, "text"),
    "doubled keys": ('{"a":1,"a":2,"":{"a":3,"a":4}}', "value"),
    "byte order mark": ('\ufeff{"a":1}', "text"),
    "carriage return": ('{"a":1}\r', "text"),
    "pretty": ('{\n  "a": [\n    1\n  ]\n}', "text"),
    "white space": (' {"a":1}', "text"),
    "empty": ("", "text"),
    "long number": ("9" * 10_000, "value"),
    "not utf-8": (b'{"a":"\xff\xfe"}', "base64"),
    "one megabyte": (b'"' + b"x" * 1_000_000 + b'"', "value"),
    "one megabyte of bytes": (bytes(range(256)) * 4_000, "base64"),
}
ODD_VALUES = {name: GIVEN.session(name, value) for name, (value, _) in ODD.items()}


@pytest.mark.parametrize("name", ODD)
def test_any_value_comes_back_to_the_byte(outcome, name):
    assert outcome.values(name) == ODD_VALUES[name]
    assert outcome.carriers[name][0] == ODD[name][1]


GIVEN.line(b"empty and null", b"")
GIVEN.line(b"empty and null", None)


def test_empty_value_is_a_record_and_null_is_the_end(outcome):
    first, second = outcome.chunks["empty and null"]
    assert [record.value for record in first.records] == [b""]
    assert (first.final, second.final) == (True, True)


GIVEN.line(b"null header", b'{"n":1}', None, (("kept", b"\xff"), ("null", None), ("", b"")))


def test_header_without_a_value_harms_nobody(outcome):
    assert outcome.values("null header") == (b'{"n":1}',)
    [letter] = [it for it in outcome.dead_letters if it.key is None]
    assert ("empty", None) in letter.headers
