"""The chain by which a reader proves that nothing is missing between two chunks."""

from collections.abc import Iterable
from hashlib import sha256


def first_digest(session: str) -> bytes:
    """Return the digest that the first chunk of ``session`` names as its previous one."""
    return sha256(session.encode()).digest()


def next_digest(previous: bytes, values: Iterable[bytes]) -> bytes:
    """Return SHA-256 of the previous digest and, of each record, its length and its bytes.

    The length (u64, big-endian) keeps ``ab, c`` and ``a, bc`` apart.
    """
    parts = [previous]
    for value in values:
        parts.append(len(value).to_bytes(8, "big"))
        parts.append(value)
    return sha256(b"".join(parts)).digest()
