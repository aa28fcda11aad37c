import pytest

from processor.protocol.runs import log_times_ms


@pytest.mark.parametrize(
    ("timestamps_ms", "times_ms"),
    [
        ([], [20]),
        ([20, 21, 21], [20, 20, 21, 21]),
        ([5, 21], [20, 20, 21]),
        ([21, 5, 22], [20, 21, 21, 22]),
    ],
    ids=["nothing", "in order", "begins before", "steps back"],
)
def test_log_time_is_the_largest_timestamp_so_far(timestamps_ms, times_ms):
    assert log_times_ms([], timestamps_ms, 30, 20) == times_ms
