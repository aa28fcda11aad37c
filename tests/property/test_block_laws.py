"""Laws of reading records together: it finds what reading them one by one does."""

from hypothesis import example, given
from hypothesis import strategies as st

from processor.core.records import Carried
from processor.counters import CharsOverFour, count_tokens
from processor.protocol.blocks import Read
from processor.wire import read_naming

PLAIN = [b'{"a":1}', b'{"sessionId":"s"}', b'{"session_id":"\xc3\xa9"}', b'{"text":"\xe2\x82\xac"}']
ODD = [b"", b"[1]", b"no", b'{"a":1} ', b'{"a":\n1}', b'{"a":1}\r', b"\xff", b'{"sessionId":1}']
DEEP = [b"[" * 61 + b"]" * 61, b'{"a":' * 61 + b"1" + b"}" * 61, b'{"a":' * 60 + b"1" + b"}" * 60]
BRACKETS = [b'{"a":"%b"}' % (b"[" * 70), b'{"a\\"":"\\\\","b":"%b\\""}' % (b"{" * 70)]


class Letters(CharsOverFour):
    """The same, but it wants texts."""

    counts_length_alone = False


@given(st.lists(st.sampled_from([*PLAIN * 4, *ODD, *DEEP, *BRACKETS])))
@example([*PLAIN, *BRACKETS])
def test_a_block_is_read_as_its_records_one_by_one(values):
    for counter in (CharsOverFour(), Letters()):
        block = Read([], [], [], [])
        block.add(values, counter, 100)
        assert list(zip(block.carried, block.sizes, block.named, strict=True)) == [
            read_naming(it)[1:] for it in values
        ]
        texts = [read_naming(it)[0] for it in values]
        assert block.token_counts == count_tokens(counter, texts, 100)


def test_a_bracket_in_a_string_is_no_depth():
    assert [read_naming(it)[1] for it in BRACKETS] == [Carried.VALUE] * 2
