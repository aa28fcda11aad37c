from tests.unit.formats.samples import read_all, sample, sessions_of

SESSION = "5a0d9f6e-1c52-4f0e-9a35-0d8f4a6c1b77"


def test_lines_without_a_session_are_of_the_file_then_of_the_line_above():
    lines, stem = sample("claude/5a*.jsonl")
    records = read_all("claude", lines, stem)
    assert sessions_of(records) == [SESSION] * 5
    assert [it.value for it in records] == lines


def test_copy_under_another_name_keeps_the_sessions_that_its_lines_name():
    lines, _ = sample("claude/5a*.jsonl")
    assert sessions_of(read_all("claude", lines, "copy")) == ["copy", *[SESSION] * 4]


def test_sub_agent_is_a_session_of_its_own_under_its_parent():
    lines, stem = sample("claude/agent-*.jsonl")
    assert sessions_of(read_all("claude", lines, stem)) == [f"{SESSION}/agent-a1b2c3d"] * 2


def test_one_agent_id_under_two_parents_is_two_sessions():
    """Symptom: of 600 sessions 6 agent ids named two sub-agents (anthropics/claude-code#44597)."""
    line = b'{"type":"user","isSidechain":true,"agentId":"a1","sessionId":"%s"}'
    assert sessions_of(read_all("claude", [line % b"p", line % b"q"])) == [
        "p/agent-a1",
        "q/agent-a1",
    ]


def test_side_chain_without_an_agent_id_stays_where_it_stands():
    line = b'{"type":"user","isSidechain":true,"sessionId":"p"}'
    assert sessions_of(read_all("claude", [line])) == ["p"]


def test_line_of_the_main_conversation_that_mentions_an_agent_is_the_sessions():
    line = b'{"type":"user","isSidechain":false,"agentId":"a1","sessionId":"p"}'
    assert sessions_of(read_all("claude", [line])) == ["p"]


def test_header_tells_when_a_line_was_written_and_which_it_is():
    lines, stem = sample("claude/5a*.jsonl")
    records = read_all("claude", lines, stem)
    assert dict(records[1].headers)["event-time"] == b"2026-03-01T08:00:01.000Z"
    assert "record-id" not in dict(records[0].headers)  # no uuid, so it may come twice


def test_record_id_is_the_same_for_the_same_bytes_alone():
    line = b'{"type":"user","sessionId":"s","uuid":"u1","n":%d}'
    one, same, other = read_all("claude", [line % 1, line % 1, line % 2])
    assert one.headers == same.headers != other.headers
