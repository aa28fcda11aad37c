"""Which messages of a call are new: the histories of a session, as far as they are remembered.

Theory of operation. A *call* brings a list of messages, mostly a known history with a few more at
its end. A *history* is such a list as remembered: the digests of its last ``WINDOW`` messages, and
one hash chained over all before them. A session keeps a few, since several agents may share it, and
an edit or a retry makes a branch beside the one it came from.

A list is held against each history, and the one that recognises most of it counts:

- *from the start*: the messages that both begin with;
- *at the end*: behind those, the longest run of the list that equals the history's last messages (a
  conversation that was compacted has a summary in place of its beginning).

A single message in common proves nothing, unless it is all of the history: people say the same
thing twice. What is not recognised is new: rather a repeat than a loss. So a list of one message is
always new, and taken for the next of the latest history.

Each message has an id: a hash chained over the list that it came in, up to it. A second reader, who
sees another part of a session's calls, gives the same message at the same place the same id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, NamedTuple

#: Messages of a history that are remembered one by one.
WINDOW: Final = 64
#: Histories remembered of a session.
BRANCHES: Final = 4
_HASH_CHARS: Final = 16
_ENOUGH: Final = 2


class _Overlap(NamedTuple):
    """How much of a list a history knows: its first, and a run further on."""

    prefix: int = 0
    run_start: int = 0
    run_end: int = 0

    def size(self) -> int:
        """Return how many messages that is."""
        return self.prefix + self.run_end - self.run_start


@dataclass(frozen=True, slots=True)
class History:
    """A list of messages as remembered.

    Attributes:
        before: Messages that came before the window.
        chain: Hash over the session and those.
        window: Digests of the messages after them.
    """

    before: int
    chain: str
    window: tuple[str, ...]

    def __len__(self) -> int:
        return self.before + len(self.window)

    def then(self, digests: Sequence[str]) -> tuple["History", list[str]]:
        """Return the history with more messages, and the chain up to each of those."""
        links = _links(self.chain, (*self.window, *digests))
        window = (*self.window, *digests)
        cut = max(0, len(window) - WINDOW)
        grown = History(self.before + cut, links[cut], window[cut:])
        return grown, links[len(self.window) + 1 :]

    def overlap(self, links: Sequence[str], digests: Sequence[str]) -> _Overlap:
        """Return what a list, whose chain is ``links``, has in common with the history."""
        prefix = 0
        if len(digests) >= self.before and links[self.before] == self.chain:
            prefix = self.before + _common(self.window, digests[self.before :])
        if prefix < _ENOUGH and not (prefix == len(self) < len(digests)):
            prefix = 0
        # Only what the prefix hasn't taken: each message of the history answers for one.
        rest = self.window[max(0, prefix - self.before) :]
        start, end = _last_run(rest, digests, prefix)
        return _Overlap(prefix, start, end) if end - start >= _ENOUGH else _Overlap(prefix)


@dataclass(frozen=True, slots=True)
class Branches:
    """What is remembered of a session.

    Attributes:
        instructions: Digest of the last ones; empty for none.
        histories: The one used last comes first.
    """

    instructions: str = ""
    histories: tuple[History, ...] = ()

    @classmethod
    def from_text(cls, text: str) -> "Branches":
        """Read what ``to_text`` wrote.

        Raises:
            ValueError: It is damaged.
        """
        instructions, *rest = text.split(" ")
        return cls(instructions, tuple(map(_history, rest)))

    def to_text(self) -> str:
        """Return it as a text of at most a few kilobytes."""
        histories = (f"{it.before}:{it.chain}:{''.join(it.window)}" for it in self.histories)
        return " ".join((self.instructions, *histories))

    def knows(self, digests: Sequence[str]) -> bool:
        """Tell whether a history has all of a list, in order, and ends as it does."""
        return any(
            it.window[-1:] == tuple(digests[-1:]) and _is_within(digests, it.window)
            for it in self.histories
        )

    def after(self, session: str, digests: Sequence[str]) -> tuple["Branches", dict[int, str]]:
        """Take in a call's list.

        Args:
            session: Whose it is.
            digests: Of the list's messages, in order.

        Returns:
            What is to be remembered from now on; and of the messages that are new, in order,
            their places in the list, each with its id.
        """
        if not digests:
            return self, {}
        empty = History(0, _hash(session), ())
        if len(digests) == 1:
            latest, *others = self.histories or (empty,)
            grown, (link,) = latest.then(digests)
            return Branches(self.instructions, (grown, *others)), {0: link}
        listed, links = empty.then(digests)
        chain = (empty.chain, *links)
        best, overlap = max(
            ((it, it.overlap(chain, digests)) for it in self.histories),
            key=lambda found: found[1].size(),
            default=(empty, _Overlap()),
        )
        known = {*range(overlap.prefix), *range(overlap.run_start, overlap.run_end)}
        new = {at: link for at, link in enumerate(links) if at not in known}
        # All of it known from the start: an older call that arrives late must not shorten it.
        kept = best if overlap.prefix == len(digests) else listed
        # A history that has grown gives way; one that was left for a branch may be gone on with.
        gone = (best,) if overlap.prefix in (len(best), len(digests)) else ()
        others = [it for it in self.histories if it not in gone]
        return Branches(self.instructions, (kept, *others)[:BRANCHES]), new


def _is_within(digests: Sequence[str], window: Sequence[str]) -> bool:
    rest = iter(window)
    return all(it in rest for it in digests)


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


def _last_run(window: Sequence[str], digests: Sequence[str], start: int) -> tuple[int, int]:
    """Return the longest run of ``digests`` from ``start`` on with which ``window`` ends.

    Of two that are equally long the first, since more is then new after it.
    """
    best = (start, start)
    for end in range(start + 1, len(digests) + 1):
        size = 0
        longest = min(len(window), end - start)
        while size < longest and window[-1 - size] == digests[end - 1 - size]:
            size += 1
        if size > best[1] - best[0]:
            best = (end - size, end)
    return best


def _links(chain: str, digests: Sequence[str]) -> list[str]:
    """Return the chain before the first of ``digests``, and up to each."""
    links = [chain]
    for digest in digests:
        chain = _hash(chain + digest)
        links.append(chain)
    return links


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_HASH_CHARS]


def _history(text: str) -> History:
    before, chain, window = text.split(":")
    starts = range(0, len(window), _HASH_CHARS)
    return History(int(before), chain, tuple(window[at : at + _HASH_CHARS] for at in starts))
