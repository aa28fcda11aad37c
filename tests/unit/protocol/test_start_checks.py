"""What a worker does not go on from: each message says what differs and what to do."""

import pytest
from msgspec.structs import replace

from processor.core.errors import ConfigError, ProcessorError
from processor.core.policy import ChunkPolicy
from processor.counters import CharsOverFour
from processor.protocol.changelog import Counts, PartitionEntry
from processor.protocol.chunking import ChunkerConfig
from processor.protocol.port import Survey
from processor.protocol.start_checks import world_agrees

CONFIG = ChunkerConfig("records", ChunkPolicy(10), CharsOverFour())
ENTRY = PartitionEntry(
    low=3,
    log_time_ms=0,
    seen=7,
    partition_count=4,
    rule=CONFIG.rule,
    fingerprint=(6, 1000),
    counts=Counts(),
)
FITS = {"partition_count": 4, "log_start": 0, "stable_end": 9, "committed": 7}
REBUILD, RESET = "`processor state rebuild", "`processor state reset`"


@pytest.mark.parametrize(("before", "now"), [((), ("user-id",)), (("user-id",), ())])
def test_what_chunks_carry_is_part_of_the_policy(before, now):
    configs = [
        ChunkerConfig("records", ChunkPolicy(10, carry_headers=it), CharsOverFour())
        for it in (before, now)
    ]
    entry = replace(ENTRY, rule=configs[0].rule)
    with pytest.raises(ConfigError, match=r"carry_headers .* -> .*ACCEPT_POLICY_CHANGE"):
        world_agrees(entry, Survey(**FITS), configs[1], "records[0]")
    world_agrees(entry, Survey(**FITS), configs[0], "records[0]")


def test_state_that_fits_is_gone_on_from():
    world_agrees(ENTRY, Survey(**FITS), CONFIG, "records[0]")
    world_agrees(ENTRY, Survey(**FITS | {"committed": None}), CONFIG, "records[0]")
    world_agrees(None, Survey(**FITS | {"committed": None}), CONFIG, "records[0]")


@pytest.mark.parametrize(
    ("entry", "differs", "what", "remedy"),
    [
        (None, {}, "the changelog holds no state", REBUILD),
        (None, {"committed": None, "has_output": True}, "there are chunks, but", REBUILD),
        (ENTRY, {"changelog_start": 2}, "changelog starts at offset 2", REBUILD),
        (None, {"changelog_start": 2}, "changelog starts at offset 2", "processor topics create"),
        (ENTRY, {"log_start": 4}, "retention has eaten", f"{REBUILD} --force --accept-deleted`"),
        (ENTRY, {"stable_end": 6, "committed": 6}, "processed up to 7", RESET),
        (ENTRY, {"timestamps": {6: 1001}}, "has the timestamp 1001", RESET),
        (ENTRY, {"committed": 5}, "someone has reset the group", "--to-offset 7`"),
        (replace(ENTRY, topic="other"), {}, "is that of topic other", "another PROCESSOR_APP_ID"),
        (ENTRY, {"partition_count": 5}, "had 4 partitions and now has 5", "PROCESSOR_APP_ID"),
    ],
)
def test_state_that_does_not_fit_is_told_with_the_remedy(entry, differs, what, remedy):
    with pytest.raises(ProcessorError) as raised:
        world_agrees(entry, Survey(**FITS | differs), CONFIG, "records[0]")
    said = str(raised.value)
    assert said.startswith("records[0]: ")
    assert what in said
    assert remedy in said
