import json

import pytest

from processor.formats.genai import digest_of
from processor.formats.histories import MAX_SESSIONS
from processor.formats.history import WINDOW
from tests.unit.formats.telemetry import (
    Reader,
    attributes,
    call,
    log,
    logs_of,
    message,
    span,
    spans_of,
    text_of,
    typed,
)


def played(*calls, reader=None):
    """Texts that each call brings, each in an export of its own."""
    reader = reader or Reader()
    return ["".join(reader.messages(spans_of(it))) for it in calls]


def ids(records):
    return {text_of(json.loads(it.value)): dict(it.headers)["record-id"] for it in records}


def test_each_message_comes_once_though_each_call_repeats_all():
    assert played(call("a", "B"), call("aBc", "D"), call("aBcDe", "F")) == ["aB", "cD", "eF"]


def test_messages_are_told_as_they_came_in_one_form():
    (given, made) = Reader().read(spans_of(call("a", "B")))
    assert given.value == b'{"parts":[{"content":"a","type":"text"}],"role":"user"}'
    assert json.loads(made.value) == message("B", "assistant", finish_reason="stop")
    assert given.session == "s"


def test_call_that_is_told_again_brings_nothing():
    assert played(call("a", "B"), call("aBc", "D"), call("aBc", "D")) == ["aB", "cD", ""]


def test_call_that_ended_before_but_comes_later_brings_nothing():
    late = call("aBc", "D")
    assert played(call("a", "B"), call("aBcDe", "F"), late, call("aBcDeFg")) == [
        "aB",
        "cDeF",
        "",
        "g",
    ]


def test_span_of_an_agent_around_its_calls_brings_nothing():
    around = {"gen_ai.operation.name": "invoke_agent"}
    calls = [call("a", "B"), call("aBc", "F"), call("a", "F", **around), call("x", "F", **around)]
    assert played(*calls) == ["aB", "cF", "", "xF"]


def test_instructions_that_only_the_span_of_an_agent_tells_come_out():
    instructions = json.dumps([{"type": "text", "content": "!"}])
    around = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.system_instructions": instructions,
    }
    assert played(call("a", "B"), call("a", "B", **around)) == ["aB", "!"]


def test_span_of_an_agent_without_calls_of_its_own_brings_its_messages():
    around = {"gen_ai.operation.name": "invoke_agent"}
    assert played(call("a", "B", **around), call("c", "D", **around)) == ["aB", "cD"]


def test_compacted_history_brings_its_summary_and_what_is_new():
    assert played(call("aBcDe", "F"), call("zeFg", "H"), call("zeFgHi")) == ["aBcDeF", "zgH", "i"]


def test_edited_history_brings_what_was_edited_and_what_is_new():
    assert played(call("aBcDe", "F"), call("aBxDeFg", "H")) == ["aBcDeF", "xgH"]


def test_retried_call_brings_its_other_answer_and_either_branch_goes_on():
    calls = [call("aBc", "D"), call("aBc", "E"), call("aBcEf"), call("aBcDg")]
    assert played(*calls) == ["aBcD", "E", "f", "g"]


def test_agents_that_share_a_session_have_a_history_each():
    calls = [call("a", "B"), call("x", "Y"), call("aBc", "D"), call("xYz", "W"), call("aBcDe")]
    assert played(*calls) == ["aB", "xY", "cD", "zW", "e"]


def test_sessions_have_histories_of_their_own_within_one_export():
    one, two = call("a", "B", session="1"), call("a", "B", session="2", number=2)
    records = Reader().read(spans_of(one, two))
    assert [it.session for it in records] == ["1", "1", "2", "2"]


def test_message_said_again_is_new():
    assert played(call("a", "B"), call("aBa", "B"), call("aBaBaBa", "B")) == ["aB", "aB", "aBaB"]


def test_single_message_told_twice_is_two():
    reader = Reader()
    one, two = (ids(reader.read(spans_of(call("a"))))["a"] for _ in range(2))
    assert one != two


def test_history_beyond_the_window_is_known_from_its_start():
    long = "aB" * WINDOW
    assert played(call(long), call(long + "c", "D")) == [long, "cD"]


def test_message_has_the_same_id_in_a_process_that_saw_another_part_of_the_calls():
    calls = [spans_of(it) for it in (call("a", "B"), call("aBc", "D"), call("aBcDe", "F"))]
    reader = Reader()
    told = {}
    for it in calls:
        told |= ids(reader.read(it))
    assert ids(Reader().read(calls[2])) == told
    assert len(set(told.values())) == 6


def test_same_message_at_another_place_or_in_another_session_has_another_id():
    (a, b), (other, _) = (
        [dict(it.headers)["record-id"] for it in Reader().read(spans_of(call("aa", session=name)))]
        for name in "12"
    )
    assert len({a, b, other}) == 3


def test_forms_of_one_message_in_output_and_input_are_one():
    asked = {"type": "tool_call", "id": "t1", "name": "f", "arguments": '{"x": 1}'}
    thought = {"type": "reasoning", "content": "hm"}
    made = {"role": "assistant", "parts": [thought, asked], "finish_reason": "tool_call"}
    again = {"role": "assistant", "parts": [asked | {"arguments": {"x": 1}, "extra": None}]}
    answer = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "t1", "result": "4"}]}
    first = {"gen_ai.input.messages": [message("a")], "gen_ai.output.messages": [made]}
    second = {"gen_ai.input.messages": [message("a"), again, answer]}
    reader = Reader(session="s")
    assert len(reader.read(spans_of(span(first)))) == 2
    (record,) = reader.read(spans_of(span(second)))
    assert json.loads(record.value) == answer


def test_instructions_come_once_and_again_when_they_change():
    def instructed(text, given):
        parts = json.dumps([{"type": "text", "content": text}])
        return call(given, **{"gen_ai.system_instructions": parts})

    calls = [instructed("!", "ab"), instructed("!", "abc"), instructed("?", "abcd")]
    assert played(*calls) == ["!ab", "c", "?d"]


def test_event_of_a_log_tells_a_call_in_its_attributes_or_in_its_body():
    told = {"gen_ai.input.messages": [message("a")], "gen_ai.output.messages": [message("b")]}
    for data in (log(told), log(body=typed(told))):
        assert Reader(session="s").messages(logs_of(data)) == ["a", "b"]


def test_event_that_holds_its_fields_in_one_text_is_read():
    plain = {"gen_ai.event.content": '{"content":"a"}', "gen_ai.system": "x"}
    event = {"name": "gen_ai.user.message", "attributes": attributes(plain)}
    (record,) = Reader(session="s").read(spans_of(span(events=[event])))
    assert json.loads(record.value) == {"role": "user", "content": "a"}


def test_event_of_a_span_tells_its_call():
    told = {"gen_ai.input.messages": json.dumps([message("a"), message("b")])}
    event = {"name": "gen_ai.client.inference.operation.details", "attributes": attributes(told)}
    assert Reader(session="s").messages(spans_of(span(events=[event]))) == ["a", "b"]


OLDER = (
    ("gen_ai.system.message", {"content": "!"}),
    ("gen_ai.user.message", {"content": "a"}),
    ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"content": "B"}}),
)
OLDER_NEXT = (
    *OLDER[:2],
    ("gen_ai.assistant.message", {"content": "B"}),
    ("gen_ai.user.message", {"content": "c"}),
)


def test_older_events_of_a_span_are_one_call():
    def older(events):
        made = [
            {
                "name": name,
                "attributes": attributes(
                    {k: v if isinstance(v, str) else json.dumps(v) for k, v in fields.items()}
                ),
            }
            for name, fields in events
        ]
        return spans_of(span(events=made))

    reader = Reader(session="s")
    assert reader.messages(older(OLDER)) == ["!", "a", "B"]
    assert reader.messages(older(OLDER_NEXT)) == ["c"]


@pytest.mark.parametrize("is_named_by_attribute", [True, False])
def test_older_events_of_a_log_are_one_call_by_their_span(is_named_by_attribute):
    def older(events, number):
        return [
            log(
                {"event.name": name} if is_named_by_attribute else {},
                body=typed(fields),
                traceId=f"{number:032x}",
                spanId=f"{number:016x}",
                **({} if is_named_by_attribute else {"eventName": name}),
            )
            for name, fields in events
        ]

    reader = Reader(session="s")
    both = logs_of(*older(OLDER, 1), *older(OLDER_NEXT, 2))
    records = reader.read(both)
    assert [text_of(json.loads(it.value)) for it in records] == ["!", "a", "B", "c"]
    assert json.loads(records[0].value) == {"role": "system", "content": "!"}
    assert json.loads(records[2].value)["role"] == "assistant"


@pytest.mark.parametrize(
    "told",
    [
        {"gen_ai.input.messages": '[{"role":"user","parts":[{"type":"te'},
        {"gen_ai.input.messages": "[3]"},
        {"gen_ai.input.messages": "[]"},
        {"gen_ai.input.messages": json.dumps([message("a")]), "gen_ai.output.messages": "cut"},
        {"gen_ai.input.messages": "[" * 100_000},
    ],
)
def test_call_that_cannot_be_read_in_full_is_a_record_as_it_is(told):
    (record,) = Reader(session="s").read(spans_of(span(told)))
    assert json.loads(record.value)["attributes"] == told


def test_call_without_a_session_is_set_aside_whole():
    document = spans_of(span({"session.id": "s"}), call("a", session=""))
    assert [it.session for it in Reader().read(document)] == ["s", None]


def test_sessions_beyond_the_limit_are_forgotten_the_longest_unused_first(monkeypatch):
    reader = Reader()
    for number in range(MAX_SESSIONS + 1):
        reader.messages(spans_of(call("a", "B", session=f"s{number}")))
        assert reader.messages(spans_of(call("a", "B", session="s0"))) == []
    assert len(reader.memory) == MAX_SESSIONS
    assert reader.messages(spans_of(call("a", "B", session="s1"))) == ["a", "B"]
    assert reader.messages(spans_of(call("a", "B", session="s3"))) == []


def test_what_is_remembered_of_a_session_is_a_few_kilobytes_at_most():
    reader = Reader()
    for number in range(10):
        texts = "".join(chr(0x4E00 + 500 * number + it) for it in range(300))
        reader.messages(spans_of(call(texts)))
    (text,) = reader.memory.values()
    assert len(text) < 5_000


@pytest.mark.parametrize(
    ("one", "other", "are_one"),
    [
        (
            {"role": "tool", "content": "ok", "id": "1"},
            {"role": "tool", "content": "ok", "id": "2"},
            0,
        ),
        ({"role": "x", "content": "ok", "id": "1"}, {"role": "x", "content": "ok"}, 1),
        ({"role": "user", "text": "a"}, {"role": "user", "text": "b"}, 0),
        ({"role": "user", "text": "a", "finish_reason": "stop"}, {"role": "user", "text": "a"}, 1),
        ({"role": "user", "content": "a"}, {"role": "assistant", "content": "a"}, 0),
        ({"role": "user", "content": "a"}, message("a"), 1),
        ({"role": "user", "content": ["a"]}, {"role": "user", "content": ["b"]}, 0),
    ],
)
def test_messages_are_compared_by_role_and_what_they_say(one, other, are_one):
    assert (digest_of(one) == digest_of(other)) == bool(are_one)
