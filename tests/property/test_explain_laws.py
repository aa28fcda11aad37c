"""What is explained adds up to what is there, and every closing has a reason above 0."""

from collections import defaultdict
from itertools import pairwise

from hypothesis import given

from processor.proof.explain import Closer, came_first, closing, ruler
from processor.proof.seen import Seen
from tests.history import chunks_of, log_messages
from tests.strategies import logs, policies


def sessions_of(log, policy):
    found = defaultdict(list)
    for message in chunks_of(log_messages(log), policy):
        found[message.key].append(Seen(message))
    return found.values()


@given(logs(), policies)
def test_ruler_ends_at_the_tokens_of_the_chunk(log, policy):
    for chunks in sessions_of(log, policy):
        for seen in chunks:
            marks = ruler(seen)
            sums = [it.running_tokens for it in marks]
            assert [it.value for it in marks] == seen.values
            assert sums[-1:] == ([seen.chunk.token_count] if marks else [])
            assert all(one < other for one, other in pairwise([0, *sums]))


@given(logs(), policies)
def test_what_closed_a_chunk_of_tokens_is_above_its_limit(log, policy):
    """Times are left out: here they step back, and the log time does not."""
    for chunks in sessions_of(log, policy):
        for seen, following in pairwise(chunks):
            why = closing(seen, came_first(following))
            if why.unit in {"tokens", "bytes", "records"}:
                assert why.excess > 0
            else:
                assert why.unit == "ms" or why.closer is Closer.END
