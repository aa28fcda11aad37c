"""Hypothesis strategies: sessions, interleavings, points where a worker stops."""

from hypothesis import strategies as st

from processor.core.policy import ChunkPolicy, OrIdle, Tokens
from tests.builders import record

BUDGET = 10

#: Sizes around every edge of the budget.
token_counts = st.one_of(
    st.sampled_from([0, 1, BUDGET - 1, BUDGET, BUDGET + 1, 3 * BUDGET]), st.integers(0, 12)
)

policies = st.builds(
    ChunkPolicy,
    max_tokens=st.just(BUDGET),
    flush=st.one_of(
        st.none(), st.builds(Tokens, st.integers(1, BUDGET)), st.builds(OrIdle, st.just(5.0))
    ),
    max_age_s=st.sampled_from([0.0, 0.0, 12.0]),
    max_chunk_records=st.sampled_from([10_000, 3, 1]),
    forget_ended_after_s=st.sampled_from([0.0, 0.0, 3.0]),
)


@st.composite
def logs(draw, max_size=40, names=("a", "b", "c"), *, ends=True):
    """One partition's log: ``(record, is_end)``, offsets with holes, times that step back."""
    offset, at_s, log = 0, 100.0, []
    for _ in range(draw(st.integers(0, max_size))):
        offset += draw(st.sampled_from([1, 1, 1, 2, 5]))
        at_s += draw(st.sampled_from([0.0, 0.5, 1.0, 4.0, 5.0, 6.0, 20.0, -0.04]))
        name = draw(st.sampled_from(names))
        is_end = ends and draw(st.integers(0, 9)) == 0
        log.append((record(draw(token_counts), session=name, offset=offset, at_s=at_s), is_end))
    return log
