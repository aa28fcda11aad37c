from tests.unit.formats.samples import read_all, sample, sessions_of

SESSION = "ffae836b-0000-4060-ac13-7745215f90ff"


def test_first_line_names_the_session_of_all():
    lines, _ = sample("pi/*.jsonl")
    records = read_all("pi", lines, "other")
    assert sessions_of(records) == [SESSION] * 3
    assert [it.value for it in records] == lines


def test_file_without_its_header_has_the_session_in_its_name():
    lines, stem = sample("pi/*.jsonl")
    assert sessions_of(read_all("pi", lines[1:], stem)) == [SESSION] * 2


def test_later_header_names_no_other_session():
    lines, _ = sample("pi/*.jsonl")
    later = lines[0].replace(b"ffae836b", b"00000000")
    assert sessions_of(read_all("pi", [*lines, later])) == [SESSION] * 4


def test_entry_has_an_id_and_a_time_in_its_headers():
    lines, stem = sample("pi/*.jsonl")
    headers = dict(read_all("pi", lines, stem)[1].headers)
    assert headers["event-time"] == b"2026-03-01T08:00:05.000Z"
    assert len(headers["record-id"]) == 32
