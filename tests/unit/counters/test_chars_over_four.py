from processor.counters import CharsOverFour


def test_four_characters_begun_are_a_token():
    texts = ["", "a", "abcd", "abcde", "\u8a9e" * 5]
    assert CharsOverFour().count_all(texts) == [0, 1, 1, 2, 2]
