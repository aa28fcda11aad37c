"""Strings that no encoding can write, for libraries that take UTF-8."""


def without_surrogates(text: str) -> str:
    """Return ``text`` with each lone surrogate as the record of its bytes would be read.

    A record whose bytes are no UTF-8 is decoded with replacement characters, one for each of the
    three bytes of a surrogate.
    """
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
