import asyncio
from collections import deque

import pytest
from aiokafka.errors import (
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    TopicAuthorizationFailedError,
)

from processor.core.errors import NoSessionError, UnreachableError
from processor.feeding import sending as module
from processor.feeding.choice import Choice, SessionRule
from processor.feeding.sending import NotSentError, Sender, Summary, send_files
from processor.formats.format import SessionRecord
from tests.unit.feeding.knowing import know

LIMIT = 100
IN_FLIGHT = 4


class VecProducer:
    """Keeps what it is sent; a delivery is done when it is awaited, or fails with ``failure``."""

    def __init__(self, failure=None):
        self.sent = []
        self.headers = []
        self.delivered = []
        self.most_pending = 0
        self._failure = failure

    async def send(self, topic, *, value, key, headers):
        if not isinstance(headers, list):
            raise TypeError  # as aiokafka does, which is compiled
        if len(value or b"") > LIMIT:
            raise MessageSizeTooLargeError
        message = (topic, key, value)
        self.headers.append(headers)
        self.sent.append(message)
        self.most_pending = max(self.most_pending, len(self.sent) - len(self.delivered))
        return self._deliver(message)

    async def _deliver(self, message):
        if self._failure is not None and message[2] == b"bad":
            raise self._failure
        self.delivered.append(message)


@pytest.fixture(autouse=True)
def few_in_flight(monkeypatch):
    monkeypatch.setattr(module, "_IN_FLIGHT", IN_FLIGHT)


def send(producer, *files, name=None, field=None, end=False, advance=lambda _: None):
    choice = Choice(SessionRule(name, field), is_session_required=True)
    sender = Sender(producer, "records")
    names = tuple(str(file) for file in files)
    return asyncio.run(send_files(sender, names, choice, advance=advance, end=end))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "talk.one.jsonl"


def test_chosen_fields_of_a_line_become_headers_of_its_record(file):
    file.write_bytes(b'{"metadata":{"user":"ada"},"n":1}\n{"n":2}\n')
    paths = (("user-id", "metadata.user"), ("n", "n"))
    producer, choice = VecProducer(), Choice(SessionRule(), header_fields=paths)
    sender = Sender(producer, "records")
    asyncio.run(send_files(sender, [str(file)], choice, advance=lambda _: None, end=False))
    assert producer.headers == [[("user-id", b"ada"), ("n", b"1")], [("n", b"2")]]


def test_each_line_is_a_record_to_the_byte(file):
    lines = [
        b'{"a":1}',
        b'\xe2\x80\xa8 "x"\xc2\x85',
        b"ends with \r",
        b"\xff\x00",
        b"no line break",
    ]
    file.write_bytes(b"\n".join(lines))
    producer = VecProducer()
    send(producer, file)
    assert [value for _, _, value in producer.delivered] == lines


def test_session_is_the_name_of_the_file_without_its_extension(file):
    file.write_bytes(b"x\n")
    producer = VecProducer()
    send(producer, file)
    assert producer.delivered == [("records", b"talk.one", b"x")]


def test_session_can_be_named(file):
    file.write_bytes(b"x\n")
    producer = VecProducer()
    send(producer, file, name="sé")
    assert producer.delivered == [("records", "sé".encode(), b"x")]


def test_session_can_be_a_field_of_each_line(file):
    file.write_bytes(b'{"m":{"s":"a"}}\n{"m":{"s":"b"}}\n')
    producer = VecProducer()
    summary = send(producer, file, field="m.s")
    assert [key for _, key, _ in producer.delivered] == [b"a", b"b"]
    assert summary.sessions == {"a", "b"}


def test_line_without_a_session_stops_after_the_lines_before_it(file):
    file.write_bytes(b'{"s":"a"}\n{"s":"a"}\n{"t":"b"}\n{"s":"c"}\n')
    producer = VecProducer()
    with pytest.raises(NoSessionError, match=r"talk\.one\.jsonl:3: .*all before it was sent"):
        send(producer, file, field="s")
    assert producer.delivered == [("records", b"a", b'{"s":"a"}')] * 2
    assert producer.sent == producer.delivered


def test_empty_lines_are_records(file):
    file.write_bytes(b"\na\n\n \n\r\n")
    producer = VecProducer()
    summary = send(producer, file)
    assert [value for _, _, value in producer.delivered] == [b"", b"a", b"", b" ", b"\r"]
    assert summary.record_count == 5


def test_end_comes_after_each_file_for_its_sessions(tmp_path):
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_bytes(b'{"s":"b"}\n{"s":"a"}\n{"s":"b"}\n')
    two.write_bytes(b'{"s":"a"}\n')
    producer = VecProducer()
    summary = send(producer, one, two, field="s", end=True)
    ends = [key if value is None else b"." for _, key, value in producer.delivered]
    assert ends == [b".", b".", b".", b"b", b"a", b".", b"a"]
    assert summary == Summary(4, 3, {"a", "b"})


def test_every_delivery_is_awaited_and_few_are_pending(file):
    file.write_bytes(b"x\n" * 50)
    producer = VecProducer()
    send(producer, file)
    assert len(producer.delivered) == 50
    assert producer.most_pending == IN_FLIGHT


def test_record_too_large_names_file_and_line_and_stops_there(file):
    file.write_bytes(b"a\nb\n" + b"x" * (LIMIT + 1) + b"\nc\n")
    producer = VecProducer()
    with pytest.raises(NotSentError, match=r"talk\.one\.jsonl:3: a record of 101 bytes"):
        send(producer, file)
    assert [value for _, _, value in producer.delivered] == [b"a", b"b"]
    assert producer.sent == producer.delivered


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (KafkaTimeoutError(), UnreachableError),
        (TopicAuthorizationFailedError(), NotSentError),
    ],
)
@pytest.mark.parametrize("after", [0, 50])
def test_delivery_that_fails_names_file_and_line(file, failure, error, after):
    file.write_bytes(b"a\nbad\n" + b"c\n" * after)
    with pytest.raises(error, match=r"talk\.one\.jsonl:2: not delivered"):
        send(VecProducer(failure), file)


def test_progress_adds_up_to_the_size_of_the_files(file):
    file.write_bytes(b"one\n\nthree\n")
    steps = deque()
    send(VecProducer(), file, advance=steps.append)
    assert sum(steps) == file.stat().st_size


def test_format_is_told_by_the_first_lines_and_gives_sessions_and_headers(tmp_path, monkeypatch):
    class Told:
        def __init__(self, options, _):
            self._session = options.session

        def read(self, value):
            return [SessionRecord(f"told-{self._session}", value, (("event-time", b"now"),))]

    know(monkeypatch, Told, lambda lines: b"told" in lines)
    told, other = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    told.write_bytes(b"\ntold\n")
    other.write_bytes(b"some\nother\n")
    producer = VecProducer()
    send(producer, told, other)
    assert [key for _, key, _ in producer.delivered] == [b"told-1"] * 2 + [b"2"] * 2
    assert producer.headers == [[("event-time", b"now")]] * 2 + [[]] * 2
